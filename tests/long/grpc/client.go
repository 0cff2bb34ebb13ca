package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func text(s string) *wrapperspb.StringValue { return wrapperspb.String(s) }

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	ctx := context.Background()
	const s = "/greeter.Greeter/"
	reply := text("")
	must(conn.Invoke(ctx, s+"SayHello", text("Ann"), reply))
	fmt.Println(reply.Value)
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	many, err := conn.NewStream(ctx, desc, s+"SayMany")
	must(err)
	must(many.SendMsg(text("Ann")))
	must(many.CloseSend())
	for {
		err := many.RecvMsg(reply)
		if err == io.EOF {
			break
		}
		must(err)
		fmt.Println(reply.Value)
	}
	collect, err := conn.NewStream(ctx, desc, s+"Collect")
	must(err)
	for _, name := range []string{"Ann", "Bob", "Cid"} {
		must(collect.SendMsg(text(name)))
	}
	must(collect.CloseSend())
	must(collect.RecvMsg(reply))
	fmt.Println(reply.Value)
	chat, err := conn.NewStream(ctx, desc, s+"Chat")
	must(err)
	for i := 0; i < 1000; i++ {
		must(chat.SendMsg(text(fmt.Sprint("n", i))))
		must(chat.RecvMsg(reply))
		if reply.Value != fmt.Sprintf("Hello, n%d!", i) {
			fmt.Println("wrong:", reply.Value)
			os.Exit(1)
		}
	}
	must(chat.CloseSend())
	fmt.Println("chat:", chat.RecvMsg(reply))
	err = conn.Invoke(ctx, s+"SayNothing", text("x"), reply)
	fmt.Println(status.Code(err) == codes.Unimplemented, status.Convert(err).Message() == "")
	cancelled, cancel := context.WithCancel(ctx)
	gone, err := conn.NewStream(cancelled, desc, s+"Chat")
	must(err)
	must(gone.SendMsg(text("gone")))
	must(gone.RecvMsg(reply))
	cancel()
	fmt.Println(status.Code(gone.RecvMsg(reply)) == codes.Canceled)
	brief, end := context.WithTimeout(ctx, 100*time.Millisecond)
	defer end()
	late, err := conn.NewStream(brief, desc, s+"Collect")
	must(err)
	must(late.SendMsg(text("late")))
	fmt.Println(status.Code(late.RecvMsg(reply)) == codes.DeadlineExceeded)
	must(conn.Invoke(ctx, s+"SayHello", text("after"), reply))
	fmt.Println(reply.Value)
}
