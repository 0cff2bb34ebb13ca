// Go's own server over TLS; CHAIN and KEY name the files in PEM. HTTP/1.1 or HTTP/2, as the handshake agrees. PLAIN is an
// address where the same is served in clear, also to clients that begin in HTTP/2. /wait is never answered.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"

	"rotor.example/peers/contract"
)

func main() {
	hello := []byte(contract.Hello)
	large := make([]byte, 0, 1<<20)
	for len(large) < cap(large) {
		large = append(large, byte('a'+len(large)%26))
	}
	plain := func(w http.ResponseWriter, body []byte) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { plain(w, hello) })
	for path, size := range map[string]int{"GET /1k": 1 << 10, "GET /64k": 64 << 10, "GET /1m": 1 << 20} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { plain(w, large[:size]) })
	}
	mux.HandleFunc("GET /wait", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	listener, err := net.Listen("tcp", contract.Address())
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}
	if address := os.Getenv("PLAIN"); address != "" {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
		inClear := &http.Server{Addr: address, Handler: mux, Protocols: protocols, ErrorLog: server.ErrorLog}
		go func() { log.Fatal(inClear.ListenAndServe()) }()
	}
	contract.Announce(listener)
	log.Fatal(server.ServeTLS(listener, os.Getenv("CHAIN"), os.Getenv("KEY")))
}
