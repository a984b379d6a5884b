package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// length is the duration of one measurement.
const length = 2 * time.Second

// echo starts a UDP server that sends each datagram back. It returns the address of the server.
func echo() (addr string, err error) {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", err
	}
	c.SetReadBuffer(4 << 20)
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			c.WriteToUDPAddrPort(b[:n], from)
		}
	}()
	return c.LocalAddr().String(), nil
}

// asker exchanges datagrams with an echo server through one socket.
type asker struct {
	net.Conn
	b []byte
}

func ask(addr string, size int) (*asker, error) {
	c, err := net.Dial("udp", addr)
	return &asker{c, make([]byte, size)}, err
}

// once sends a datagram and waits until it comes back. If the datagram is lost, it sends another.
func (a *asker) once() error {
	for tries := 0; ; tries++ {
		if _, err := a.Write(a.b); err != nil {
			return err
		}
		a.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := a.Read(a.b); err == nil || tries == 5 {
			return err
		}
	}
}

// latency measures the round trip of a datagram. It returns the median in microseconds.
func latency(addr string, size int) (float64, error) {
	a, err := ask(addr, size)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	var took []float64
	for end := time.Now().Add(length); time.Now().Before(end); {
		began := time.Now()
		if err := a.once(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began).Nanoseconds())/1000)
	}
	return median(took), nil
}

// exchanges measures how many datagrams per second are exchanged through the given number of
// sockets together.
func exchanges(addr string, size, sockets int) (float64, error) {
	return perSecond(sockets, func(another func() bool) error {
		a, err := ask(addr, size)
		if err != nil {
			return err
		}
		defer a.Close()
		for err == nil && another() {
			err = a.once()
		}
		return err
	})
}

// newFlows measures exchanges that use a new socket each, as name resolvers do. It returns their
// number per second.
func newFlows(addr string, sockets int) (float64, error) {
	return perSecond(sockets, func(another func() bool) error {
		for another() {
			a, err := ask(addr, 64)
			if err != nil {
				return err
			}
			err = a.once()
			a.Close()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// perSecond runs work in the given number of goroutines for a while. It returns how often per
// second they call the function another.
func perSecond(workers int, work func(another func() bool) error) (float64, error) {
	var count atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	began := time.Now()
	end := began.Add(length)
	for range workers {
		all.Go(func() {
			err := work(func() bool { count.Add(1); return time.Now().Before(end) })
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(count.Load()) / time.Since(began).Seconds(), nil
}
