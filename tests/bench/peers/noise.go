package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

const (
	// roleEnv is the environment variable that makes this program a source of noise or its
	// upstream. The address is in atEnv.
	roleEnv = "FLORETE_BENCH_ROLE"
	atEnv   = "FLORETE_BENCH_AT"

	datagrams = "datagrams"
)

// noises contains a function for each type of noise. The function puts the highest possible load of
// this type on an address, and does not return.
var noises = map[string]func(at string){
	"bulk": func(at string) {
		forever(8, func() {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				return
			}
			defer conn.Close()
			b := make([]byte, 128<<10)
			b[0] = sink
			for err == nil {
				_, err = conn.Write(b)
			}
		})
	},
	"resets": func(at string) {
		forever(32, func() {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				return
			}
			// If the connection were reset before the answer, the request might never reach the
			// peer.
			conn.Write([]byte{0})
			conn.Read(make([]byte, 1))
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		})
	},
	datagrams: func(at string) {
		forever(4, func() {
			conn, err := net.Dial("udp", at)
			if err != nil {
				return
			}
			defer conn.Close()
			b := make([]byte, 1200)
			for err == nil {
				_, err = conn.Write(b)
			}
		})
	},
}

// forever makes noise by calling f in n goroutines, again and again without end.
func forever(n int, f func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				f()
			}
		})
	}
	all.Wait()
}

// child acts in the role that the environment names. It returns if the environment names no role.
func child() {
	role, at := os.Getenv(roleEnv), os.Getenv(atEnv)
	switch role {
	case "":
		return
	case "upstream":
		if err := serve(at); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		select {}
	}
	noises[role](at)
}

// sink is the first byte of a connection on which the upstream only reads.
const sink = 1

// upstream starts the upstream of the quiet peer. It returns the address of the upstream.
func upstream() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go accept(ln)
	return ln.Addr().String(), nil
}

// serve serves TCP connections and UDP datagrams at an address.
func serve(at string) error {
	ln, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	udp, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	go accept(ln)
	go func() {
		b := make([]byte, 64<<10)
		for {
			if _, _, err := udp.ReadFrom(b); err != nil {
				return
			}
		}
	}()
	return nil
}

func accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			first := make([]byte, 1)
			if _, err := io.ReadFull(conn, first); err != nil {
				return
			}
			if first[0] == sink {
				io.Copy(io.Discard, conn)
				return
			}
			conn.Write(first)
			io.Copy(conn, conn)
		}()
	}
}
