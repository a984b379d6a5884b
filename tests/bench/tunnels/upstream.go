package main

import (
	"bufio"
	"net"
	"sync/atomic"
)

// These constants are the values of the first byte of a connection. The byte selects how the
// upstream behaves.
const (
	echo   = 'e' // sends each byte back
	sink   = 'u' // reads everything
	source = 'd' // sends until the connection ends
	http   = 'G' // answers HTTP requests
)

// block is the size in bytes of one write of bulk data.
const block = 256 << 10

var (
	request  = []byte("GET /hello HTTP/1.1\r\nHost: outline.service.demo.flor\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
	response = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 64\r\n\r\n" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
)

// serve starts the upstream that all tunnels connect to. It returns the address of the upstream.
func serve() (addr string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
	return ln.Addr().String(), nil
}

func answer(c net.Conn) {
	var first [1]byte
	if _, err := c.Read(first[:]); err != nil {
		return
	}
	switch first[0] {
	case echo:
		for b := first[:]; ; {
			if _, err := c.Write(b); err != nil {
				return
			}
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	case sink:
		discard(c, &sunk)
	case source:
		for b := make([]byte, block); ; {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	case http:
		in := bufio.NewReader(c)
		for rest := len(request) - 1; ; rest = len(request) {
			if _, err := in.Discard(rest); err != nil {
				return
			}
			if _, err := c.Write(response); err != nil {
				return
			}
		}
	}
}

// sunk is the number of bytes that the behaviour sink has read.
var sunk atomic.Int64

// discard reads a connection to its end and adds the number of bytes to a counter.
func discard(c net.Conn, count *atomic.Int64) error {
	b := make([]byte, block)
	for {
		n, err := c.Read(b)
		count.Add(int64(n))
		if err != nil {
			return err
		}
	}
}
