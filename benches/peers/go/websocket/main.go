// gorilla/websocket as its own examples are: each message back, or with MODE=broadcast to all, framed once.
package main

import (
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/gorilla/websocket"
	"rotor.example/peers/contract"
)

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

func echo(w http.ResponseWriter, r *http.Request) {
	c, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer c.Close()
	for {
		kind, message, err := c.ReadMessage()
		if err != nil || c.WriteMessage(kind, message) != nil {
			return
		}
	}
}

var (
	lock    sync.Mutex
	members = map[chan *websocket.PreparedMessage]bool{}
)

func talk(w http.ResponseWriter, r *http.Request) {
	c, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer c.Close()
	said := make(chan *websocket.PreparedMessage, 64)
	lock.Lock()
	members[said] = true
	lock.Unlock()
	go func() {
		for message := range said {
			if c.WritePreparedMessage(message) != nil {
				return
			}
		}
	}()
	for {
		kind, message, err := c.ReadMessage()
		if err != nil {
			break
		}
		prepared, _ := websocket.NewPreparedMessage(kind, message)
		lock.Lock()
		for member := range members {
			select {
			case member <- prepared:
			default:
			}
		}
		lock.Unlock()
	}
	lock.Lock()
	delete(members, said)
	lock.Unlock()
	close(said)
}

func main() {
	listener, err := net.Listen("tcp", contract.Address())
	if err != nil {
		log.Fatal(err)
	}
	contract.Announce(listener)
	handler := http.HandlerFunc(echo)
	if os.Getenv("MODE") == "broadcast" {
		handler = http.HandlerFunc(talk)
	}
	log.Fatal(http.Serve(listener, handler))
}
