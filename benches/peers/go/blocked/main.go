// Go's own server, in which one request in a hundred blocks its goroutine's thread for 20 ms: by nanosleep(2), of which
// the runtime knows as little as of any system call. What the servers in Rust of ../../blocked have in common, it has too.
package main

import (
	"log"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"syscall"

	"rotor.example/peers/contract"
)

var requests atomic.Uint64

func block() {
	left := syscall.NsecToTimespec(20_000_000)
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}

func main() {
	handler := func(w http.ResponseWriter, _ *http.Request) {
		text := "not held up"
		if requests.Add(1)%100 == 0 {
			block()
			text = "was held up"
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Write([]byte(text))
	}
	listener, err := net.Listen("tcp", contract.Address())
	if err != nil {
		log.Fatal(err)
	}
	contract.Announce(listener)
	log.Fatal(http.Serve(listener, http.HandlerFunc(handler)))
}
