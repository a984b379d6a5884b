package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// measure is an operation of a quiet peer that is repeated as often as possible, for example
// opening a connection.
type measure struct {
	key, what string
	of        func(at string, lasting time.Duration) (perSecond float64, err error)
}

var quiet = []measure{
	{"requests_per_s", "requests /s", func(at string, lasting time.Duration) (float64, error) {
		return repeat(4, lasting, func(until time.Time) (n int, err error) {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				return 0, err
			}
			defer conn.Close()
			for b := make([]byte, 64); time.Now().Before(until); n++ {
				if err := exchange(conn, b); err != nil {
					return n, err
				}
			}
			return n, nil
		})
	}},
	{"opens_per_s", "opens /s", func(at string, lasting time.Duration) (float64, error) {
		return repeat(4, lasting, func(until time.Time) (n int, err error) {
			for b := make([]byte, 1); time.Now().Before(until); n++ {
				conn, err := net.Dial("tcp", at)
				if err != nil {
					return n, err
				}
				err = exchange(conn, b)
				conn.Close()
				if err != nil {
					return n, err
				}
			}
			return n, nil
		})
	}},
	{"bulk_kb_per_s", "bulk, kB/s", func(at string, lasting time.Duration) (float64, error) {
		return repeat(1, lasting, func(until time.Time) (n int, err error) {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				return 0, err
			}
			defer conn.Close()
			go func() {
				b := make([]byte, 64<<10)
				for err := error(nil); err == nil; {
					_, err = conn.Write(b)
				}
			}()
			for b := make([]byte, 256<<10); time.Now().Before(until); {
				m, err := conn.Read(b) // the upstream echoes
				if n += m; err != nil {
					return n / 1000, err
				}
			}
			return n / 1000, nil
		})
	}},
}

func exchange(conn net.Conn, b []byte) error {
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, b)
	return err
}

// repeat runs f in several goroutines for a time. It returns how often per second f succeeded.
func repeat(workers int, lasting time.Duration, f func(until time.Time) (int, error)) (float64, error) {
	began := time.Now()
	var total atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			n, err := f(began.Add(lasting))
			total.Add(int64(n))
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(total.Load()) / time.Since(began).Seconds(), nil
}
