package main

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// measure is a figure that is measured for each tunnel, for example the requests per second.
type measure struct {
	key   string
	of    func(*running) (float64, error)
	cpu   string  // if the figure is a rate, the name of the figure for processor time per unit
	scale float64 // factor from seconds to the unit of cpu
}

var measures = []measure{
	{"bulk_gbps", func(t *running) (float64, error) { return bulk(t.Addr, 1) }, "bulk ms/Gbit", 1e3},
	{"bulk4_gbps", func(t *running) (float64, error) { return bulk(t.Addr, 4) }, "bulk4 ms/Gbit", 1e3},
	{"open64_per_s", func(t *running) (float64, error) { return opens(t.Addr) }, "open64 us", 1e6},
	{"open1_p50_us", func(t *running) (float64, error) { return openLatency(t.Addr) }, "", 0},
	{"http32_rps", func(t *running) (float64, error) { return requests(t.Addr) }, "http32 us", 1e6},
	{"rss_mb", func(t *running) (float64, error) { return t.Resident() }, "", 0},
	{"idle1000_mb", idle, "", 0},
}

// dial connects to an address. The first byte that it sends selects the behaviour of the upstream.
func dial(addr string, what byte) (*net.TCPConn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = c.Write([]byte{what})
	return c.(*net.TCPConn), err
}

// bulk measures the throughput of a tunnel. It sends on several connections for half of the time,
// and receives for the other half. It returns the throughput in Gbit/s.
func bulk(addr string, conns int) (float64, error) {
	var received atomic.Int64
	up, err := rate(&sunk, conns, func(until time.Time) error { return upload(addr, until) })
	if err != nil {
		return 0, err
	}
	down, err := rate(&received, conns, func(until time.Time) error { return download(addr, until, &received) })
	return (up + down) / 2 * 8 / 1e9, err
}

// rate runs work in several goroutines for a while. It returns how fast the counter counted
// increases, per second.
func rate(counted *atomic.Int64, conns int, work func(until time.Time) error) (float64, error) {
	began, before := time.Now(), counted.Load()
	err := parallel(conns, func() error { return work(began.Add(*length / 2)) })
	return float64(counted.Load()-before) / time.Since(began).Seconds(), err
}

func upload(addr string, until time.Time) error {
	c, err := dial(addr, sink)
	if err != nil {
		return err
	}
	c.SetDeadline(until)
	for b := make([]byte, block); err == nil; {
		_, err = c.Write(b)
	}
	return cut(c, err)
}

func download(addr string, until time.Time, received *atomic.Int64) error {
	c, err := dial(addr, source)
	if err != nil {
		return err
	}
	c.SetDeadline(until)
	return cut(c, discard(c, received))
}

// cut resets a connection at the end of a measurement, so that data in flight does not disturb the
// next one.
func cut(c *net.TCPConn, err error) error {
	c.SetLinger(0)
	c.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// once opens a connection, exchanges one byte and closes the connection.
func once(addr string) error {
	c, err := dial(addr, echo)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}

// opens measures how many connections 64 workers open per second.
func opens(addr string) (float64, error) {
	return perSecond(64, func(another func() bool) error {
		for another() {
			if err := once(addr); err != nil {
				return err
			}
		}
		return nil
	})
}

// openLatency measures how long one worker takes for a connection with the function once. It
// returns the median in microseconds.
func openLatency(addr string) (float64, error) {
	var took []float64
	for end := time.Now().Add(*length); time.Now().Before(end); {
		began := time.Now()
		if err := once(addr); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began).Nanoseconds())/1000)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// requests measures how many HTTP requests are answered per second on 32 connections.
func requests(addr string) (float64, error) {
	return perSecond(32, func(another func() bool) error {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		for b := make([]byte, len(response)); another(); {
			if _, err := c.Write(request); err != nil {
				return err
			}
			if _, err := io.ReadFull(c, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// settle is the time after which an idle tunnel has released the memory that it does not keep.
const settle = 3 * time.Second

// idle measures the memory of idle connections. It opens a thousand connections through a new
// tunnel and sends one byte on each. It returns the memory that they add to both ends.
func idle(t *running) (float64, error) {
	p, err := t.start(t.upstream)
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if err := once(p.Addr); err != nil {
		return 0, err
	}
	time.Sleep(settle)
	without, err := p.Resident()
	if err != nil {
		return 0, err
	}
	for range 1000 {
		c, err := dial(p.Addr, echo)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return 0, err
		}
	}
	time.Sleep(settle)
	with, err := p.Resident()
	p.Snapshot()
	return with - without, err
}

// perSecond runs work in the given number of goroutines for a while. It returns how often per
// second they call the function another.
func perSecond(workers int, work func(another func() bool) error) (float64, error) {
	var count atomic.Int64
	began := time.Now()
	end := began.Add(*length)
	err := parallel(workers, func() error {
		return work(func() bool { count.Add(1); return time.Now().Before(end) })
	})
	return float64(count.Load()) / time.Since(began).Seconds(), err
}

// parallel runs work in the given number of goroutines. If some of them fail, it returns one of the
// errors.
func parallel(workers int, work func() error) error {
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			if err := work(); err != nil {
				failed.Store(&err)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
