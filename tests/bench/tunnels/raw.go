package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"github.com/florete/florete/tests/bench/pair"
)

// rawEnv is the environment variable that makes this program an end of the minimal tunnel, which
// shows the cost of QUIC alone. The tunnel carries each TCP connection as a stream of one QUIC
// connection, with io.Copy. It checks only certificates.
const rawEnv = "FLORETE_BENCH_RAW"

func startRaw(upstream string) (*pair.Pair, error) {
	p, k, between, err := ends()
	for _, end := range [][]string{{"server", between, upstream}, {"client", p.Addr, between}} {
		if err == nil {
			err = p.StartSelf(rawEnv + "=" + strings.Join(append(end, k.chain, k.key, k.root), " "))
		}
	}
	return ready(p, err)
}

func rawChild() {
	args := strings.Fields(os.Getenv(rawEnv))
	if len(args) == 0 {
		return
	}
	config, err := keys{args[3], args[4], args[5]}.config()
	if err == nil && args[0] == "server" {
		err = rawServer(args[1], args[2], config)
	} else if err == nil {
		err = rawClient(args[1], args[2], config)
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

var rawConfig = &quicgo.Config{MaxIncomingStreams: 1 << 16, KeepAlivePeriod: time.Second}

func rawServer(listen, upstream string, config *tls.Config) error {
	ln, err := quicgo.ListenAddr(listen, config, rawConfig)
	if err != nil {
		return err
	}
	for {
		conn, err := ln.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			for {
				st, err := conn.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go func() {
					c, err := net.Dial("tcp", upstream)
					if err != nil {
						st.CancelRead(1)
						st.CancelWrite(1)
						return
					}
					join(c.(*net.TCPConn), st)
				}()
			}
		}()
	}
}

func rawClient(listen, server string, config *tls.Config) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	var conn *quicgo.Conn
	err = pair.Wait(func() error {
		conn, err = quicgo.DialAddr(context.Background(), server, config, rawConfig)
		return err
	})
	for err == nil {
		var c net.Conn
		if c, err = ln.Accept(); err != nil {
			return err
		}
		go func() {
			st, err := conn.OpenStream()
			if err != nil {
				c.Close()
				return
			}
			join(c.(*net.TCPConn), st)
		}()
	}
	return err
}

func join(c *net.TCPConn, st *quicgo.Stream) {
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := io.Copy(st, c); err != nil {
			st.CancelWrite(1)
		}
		st.Close()
	})
	both.Go(func() {
		if _, err := io.Copy(c, st); err != nil {
			st.CancelRead(1)
		}
		c.CloseWrite()
	})
	both.Wait()
	c.Close()
}
