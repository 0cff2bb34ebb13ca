// Package contract is what the servers in Go have in common with those in Rust: see ../contract there.
package contract

import (
	"fmt"
	"net"
	"os"
)

// Hello is the body of the hello answer.
const Hello = "Hello, World!"

// Address is where to listen: the first argument.
func Address() string {
	if len(os.Args) > 1 {
		return os.Args[1]
	}
	return "127.0.0.1:3000"
}

// Announce prints where the server listens, for whoever started it on port 0.
func Announce(listener net.Listener) {
	fmt.Printf("listening on http://%s/\n", listener.Addr())
}

// Body64K is the body of the /64k answer: 64 KiB of the alphabet over and over.
func Body64K() []byte {
	body := make([]byte, 64*1024)
	for i := range body {
		body[i] = byte('a' + i%26)
	}
	return body
}
