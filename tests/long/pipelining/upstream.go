// A server of Go's net/http for tests/long/pipelines: it answers as X-Answer says, reports in fields what it has seen
// of the request, and prints the same. Its argument is the number of milliseconds after which it closes an idle
// connection.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	printing sync.Mutex
	out      = bufio.NewWriter(os.Stdout)
)

func say(words ...string) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Fprintln(out, strings.Join(words, "\t"))
	out.Flush()
}

func answer(w http.ResponseWriter, r *http.Request) {
	canary := strings.Join(r.Header["X-Canary"], ",")
	odd := hex.EncodeToString([]byte(strings.Join(r.Header["X-Odd"], ",")))
	say("head", canary, r.Method, r.RequestURI, odd)
	kind := r.Header.Get("X-Answer")
	fields := w.Header()
	fields.Set("X-Canary", canary)
	fields.Set("X-Target", r.RequestURI)
	if kind == "early" {
		text(w, 200, canary)
		return
	}
	if kind == "duplex" {
		http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(200)
		chunk := make([]byte, 8192)
		for {
			count, err := r.Body.Read(chunk)
			w.Write(chunk[:count])
			http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	}
	digest := sha256.New()
	length, err := io.Copy(digest, r.Body)
	if err != nil {
		return
	}
	seen := fmt.Sprintf("%s %d %s", r.Method, length, hex.EncodeToString(digest.Sum(nil))[:16])
	say("whole", canary, seen)
	fields.Set("X-Seen", seen)
	switch kind {
	case "chunked":
		w.WriteHeader(200)
		io.WriteString(w, canary)
		http.NewResponseController(w).Flush()
		io.WriteString(w, "+"+canary)
	case "empty":
		text(w, 200, "")
	case "204", "304":
		status, _ := strconv.Atoi(kind)
		w.WriteHeader(status)
	case "404", "500":
		status, _ := strconv.Atoi(kind)
		text(w, status, canary)
	case "103":
		fields.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(103)
		text(w, 200, canary)
	case "big":
		text(w, 200, strings.Repeat(canary+"\n", 100_000/len(canary)))
	case "close":
		fields.Set("Connection", "close")
		text(w, 200, canary)
	default:
		text(w, 200, canary)
	}
}

func text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	io.WriteString(w, body)
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	say("listening on http://" + listener.Addr().String() + "/")
	// Not the default mux: it redirects paths that are not in its form.
	server := &http.Server{Handler: http.HandlerFunc(answer), DisableGeneralOptionsHandler: true}
	if len(os.Args) > 1 {
		milliseconds, err := strconv.Atoi(os.Args[1])
		if err != nil {
			panic(err)
		}
		server.IdleTimeout = time.Duration(milliseconds) * time.Millisecond
	}
	panic(server.Serve(listener))
}
