// A client of net/http that gets sixteen large bodies at a time, in memory (io.ReadAll) or in files (io.Copy to a file of
// os.CreateTemp, which is read again). What it is called with, what it looks at of a body, and what it prints are as in
// ../../bodies/work.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	batch = 16
	body  = 8 << 20
	beat  = time.Millisecond
	step  = 1973
)

// What is seen of a body: one octet in so many.
type summary struct {
	len, next int
	most      byte
}

func (s *summary) Write(piece []byte) (int, error) {
	at := s.next
	for ; at < len(piece); at += step {
		s.most = max(s.most, piece[at])
	}
	s.next = at - len(piece)
	s.len += len(piece)
	return len(piece), nil
}

func inMemory(from io.Reader) (seen summary, err error) {
	var all []byte
	if all, err = io.ReadAll(from); err == nil {
		_, err = seen.Write(all)
	}
	return seen, err
}

func inFile(from io.Reader, directory string) (seen summary, err error) {
	file, err := os.CreateTemp(directory, "body")
	if err != nil {
		return seen, err
	}
	defer file.Close()
	if err = os.Remove(file.Name()); err != nil {
		return seen, err
	}
	if _, err = io.Copy(file, from); err != nil {
		return seen, err
	}
	if _, err = file.Seek(0, io.SeekStart); err != nil {
		return seen, err
	}
	// The reader alone, so that the buffer is used: as large as that of a spool.
	only := struct{ io.Reader }{file}
	_, err = io.CopyBuffer(&seen, only, make([]byte, 256<<10))
	return seen, err
}

func get(client *http.Client, way, address, directory string) error {
	answer, err := client.Get("http://" + address + "/")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var seen summary
	if way == "file" {
		seen, err = inFile(answer.Body, directory)
	} else {
		seen, err = inMemory(answer.Body)
	}
	if err == nil && (seen.len != body || seen.most != 255) {
		err = errors.New("another body")
	}
	return err
}

// How late its beats come until it is closed, in microseconds.
func heart(stop chan struct{}, beats chan []float64) {
	var late []float64
	for {
		select {
		case <-stop:
			beats <- late
			return
		default:
			due := time.Now().Add(beat)
			time.Sleep(beat)
			late = append(late, float64(time.Since(due).Microseconds()))
		}
	}
}

// User and system time of the process, in milliseconds.
func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

func peakMiB() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, line, _ := bytes.Cut(status, []byte("VmHWM:"))
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return 0
	}
	kib, _ := strconv.ParseFloat(words[0], 64)
	return kib / 1024
}

func main() {
	if len(os.Args) != 6 {
		log.Fatal("run WAY ADDRESS DIRECTORY BATCHES")
	}
	way, address, directory := os.Args[2], os.Args[3], os.Args[4]
	batches, err := strconv.Atoi(os.Args[5])
	if err != nil || (way != "ram" && way != "file") {
		log.Fatal("ram or file, and a number of batches")
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: batch}}
	all := func() {
		done := make(chan error)
		for range batch {
			go func() { done <- get(client, way, address, directory) }()
		}
		for range batch {
			if err := <-done; err != nil {
				log.Fatal(err)
			}
		}
	}
	// Connections stand and memory is there.
	all()
	stop, beats := make(chan struct{}), make(chan []float64)
	go heart(stop, beats)
	began, used := time.Now(), cpu()
	for range batches {
		all()
	}
	clock, used := float64(time.Since(began).Microseconds())/1e3, cpu()-used
	close(stop)
	late := <-beats
	sort.Float64s(late)
	p99 := 0.0
	if len(late) > 0 {
		p99 = late[len(late)*99/100]
	}
	each := float64(batches)
	fmt.Println(clock/each, used/each, p99, peakMiB())
}
