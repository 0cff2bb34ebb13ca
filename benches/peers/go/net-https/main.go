// Go's own server over TLS; CHAIN and KEY name the files in PEM. HTTP/1.1, as the others here.
package main

import (
	"crypto/tls"
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
	mux.HandleFunc("GET /1m", func(w http.ResponseWriter, _ *http.Request) { plain(w, large) })
	listener, err := net.Listen("tcp", contract.Address())
	if err != nil {
		log.Fatal(err)
	}
	contract.Announce(listener)
	server := &http.Server{
		Handler:      mux,
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	log.Fatal(server.ServeTLS(listener, os.Getenv("CHAIN"), os.Getenv("KEY")))
}
