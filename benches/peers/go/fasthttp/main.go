// fasthttp, on as many threads as GOMAXPROCS says, with its own way to serve a file.
package main

import (
	"log"
	"net"
	"os"

	"github.com/valyala/fasthttp"

	"rotor.example/peers/contract"
)

func main() {
	hello := []byte(contract.Hello)
	body64k := contract.Body64K()
	file := os.Getenv("FILE")

	// It reads the body of a request before it calls this.
	handle := func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/":
			ctx.SetContentType("text/plain")
			ctx.SetBody(hello)
		case "/64k":
			ctx.SetContentType("text/plain")
			ctx.Response.SetBodyRaw(body64k)
		case "/file":
			fasthttp.ServeFileUncompressed(ctx, file)
		default:
			ctx.SetStatusCode(fasthttp.StatusNotFound)
		}
	}

	listener, err := net.Listen("tcp", contract.Address())
	if err != nil {
		log.Fatal(err)
	}
	contract.Announce(listener)
	log.Fatal(fasthttp.Serve(listener, handle))
}
