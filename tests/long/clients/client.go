// Go's net/http against http_echo: one connection for many requests, bodies with and without a length, an
// expectation, conditions, many requests at once. Ends with an error if anything is not as it should be.
//
//	go run tests/long/clients/client.go http://127.0.0.1:3000/
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
)

func main() {
	url := os.Args[1]
	transport := &http.Transport{MaxIdleConnsPerHost: 64, ExpectContinueTimeout: 30e9}
	client := &http.Client{Transport: transport}

	page, body := ask(client, "GET", url, nil, nil)
	check(page.StatusCode == 200 && len(body) > 0, "a page", page.Status)
	again, none := ask(client, "GET", url, nil, map[string]string{"If-None-Match": page.Header.Get("ETag")})
	check(again.StatusCode == 304 && len(none) == 0, "304", again.Status)
	head, none := ask(client, "HEAD", url, nil, nil)
	check(head.ContentLength == int64(len(body)) && len(none) == 0, "HEAD", head.Status)

	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	_, echoed := ask(client, "POST", url, bytes.NewReader(big), nil)
	check(bytes.Equal(echoed, big), "a body with a length")
	// A reader of no known kind is sent in chunks.
	_, echoed = ask(client, "POST", url, io.MultiReader(bytes.NewReader(big)), nil)
	check(bytes.Equal(echoed, big), "a body in chunks")
	_, echoed = ask(client, "POST", url, bytes.NewReader(big), map[string]string{"Expect": "100-continue"})
	check(bytes.Equal(echoed, big), "a body that waits for 100")
	fields, listed := ask(client, "PUT", url+"echo", strings.NewReader("x"), map[string]string{"X-Test": "yes"})
	check(fields.StatusCode == 200 && strings.Contains(strings.ToLower(string(listed)), "x-test: yes"), "fields")
	refused, _ := ask(client, "DELETE", url, nil, nil)
	check(refused.StatusCode == 405 && strings.Contains(refused.Header.Get("Allow"), "GET"), "405", refused.Status)

	reused := 0
	for number := 0; number < 1000; number++ {
		reused += one(client, url, fmt.Sprint(number))
	}
	check(reused >= 999, "one connection for all, but was reused", reused)

	var group sync.WaitGroup
	for worker := 0; worker < 64; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := 0; number < 200; number++ {
				one(client, url, fmt.Sprint(worker, ".", number))
			}
		}()
	}
	group.Wait()
	fmt.Println("Go net/http: all as it should be")
}

// Posts a body of its own and expects it back; 1 if the connection had been used before.
func one(client *http.Client, url, body string) int {
	reused := 0
	request, err := http.NewRequest("POST", url, strings.NewReader(body))
	must(err)
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused {
			reused = 1
		}
	}}
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
	response, err := client.Do(request)
	must(err)
	echoed, err := io.ReadAll(response.Body)
	must(err)
	response.Body.Close()
	check(string(echoed) == body, "its own body, not", string(echoed), "for", body)
	return reused
}

func ask(client *http.Client, method, url string, body io.Reader, fields map[string]string) (*http.Response, []byte) {
	request, err := http.NewRequest(method, url, body)
	must(err)
	for name, value := range fields {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	must(err)
	defer response.Body.Close()
	whole, err := io.ReadAll(response.Body)
	must(err)
	return response, whole
}

func check(holds bool, what ...any) {
	if !holds {
		fmt.Fprintln(os.Stderr, append([]any{"expected:"}, what...)...)
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
