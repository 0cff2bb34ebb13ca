// A server of Go's net/http that responds in all kinds of ways; its argument is the length of /big. Prints its
// address.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
)

func octets(count int) []byte {
	octets := make([]byte, count)
	for at := range octets {
		octets[at] = byte(at % 251)
	}
	return octets
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "5")
	io.WriteString(w, "hello")
}

// raw answers by hand, and closes the connection without a word.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		connection, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			log.Fatal(err)
		}
		buffer.WriteString(answer)
		buffer.Flush()
		connection.Close()
	}
}

func main() {
	length, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	big := octets(length)
	http.HandleFunc("/hello", hello)
	http.HandleFunc("/204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	http.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", r.Header.Get("If-None-Match"))
		w.WriteHeader(304)
	})
	http.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { w.Write(big) })
	http.HandleFunc("/chunked", func(w http.ResponseWriter, _ *http.Request) {
		for _, piece := range []string{"one", "two", "three"} {
			io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	})
	http.HandleFunc("/103", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(103)
		hello(w, r)
	})
	http.HandleFunc("/until-close", raw("HTTP/1.1 200 OK\r\n\r\nno length"))
	http.HandleFunc("/closes", raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	http.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		w.Write(body)
	})
	http.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) {
		count, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		fmt.Fprint(w, count)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
