// Go's own server. It starts on as many threads as GOMAXPROCS says, and has no time-outs unless it is told to.
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
	body64k := contract.Body64K()
	file := os.Getenv("FILE")

	plain := func(w http.ResponseWriter, body []byte) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { plain(w, hello) })
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		plain(w, hello)
	})
	mux.HandleFunc("GET /64k", func(w http.ResponseWriter, _ *http.Request) { plain(w, body64k) })
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })

	listener, err := net.Listen("tcp", contract.Address())
	if err != nil {
		log.Fatal(err)
	}
	contract.Announce(listener)
	log.Fatal(http.Serve(listener, mux))
}
