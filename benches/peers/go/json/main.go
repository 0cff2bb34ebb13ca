// The service that sums numbers in JSON, on Go's own server: a goroutine for each request parses the body and sleeps. It
// has one way only, so it looks at DELAY_MS and at nothing else of what ../../json/task says.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"rotor.example/peers/contract"
)

const bodyBytesMax = 1024 * 1024

func main() {
	delay := 20 * time.Millisecond
	if text := os.Getenv("DELAY_MS"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil {
			log.Fatal(err)
		}
		delay = time.Duration(ms) * time.Millisecond
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r)
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		var numbers []int64
		if json.Unmarshal(body, &numbers) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var sum int64
		for _, number := range numbers {
			sum += number
		}
		time.Sleep(delay)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"sum":%d}`, sum)
	})
	listener, err := net.Listen("tcp", contract.Address())
	if err != nil {
		log.Fatal(err)
	}
	contract.Announce(listener)
	log.Fatal(http.Serve(listener, mux))
}

// The body, in room for what was announced, as the others make it.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, bodyBytesMax)
	if r.ContentLength < 0 || r.ContentLength > bodyBytesMax {
		return io.ReadAll(limited)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(limited, body)
	return body, err
}
