package main

import (
	"bufio"
	"net"
	"sync/atomic"
)

// What the first byte of a connection wants of the upstream.
const (
	echo   = 'e' // of each byte
	sink   = 'u' // takes all
	source = 'd' // sends until the connection ends
	http   = 'G' // answers requests
)

// block is what bulk is written in.
const block = 256 << 10

var (
	request  = []byte("GET /hello HTTP/1.1\r\nHost: outline.service.demo.flor\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
	response = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 64\r\n\r\n" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
)

// serve starts the upstream of all tunnels.
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

// sunk counts the bytes that sink has taken.
var sunk atomic.Int64

// discard counts what it reads.
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
