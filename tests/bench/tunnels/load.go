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

// measure is one figure of a tunnel.
type measure struct {
	key   string
	of    func(*running) (float64, error)
	cpu   string  // for a rate, the name of the figure for processor time per unit; otherwise empty
	scale float64 // from seconds to the unit of cpu
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

// dial connects and selects a behaviour of the upstream by its first byte.
func dial(addr string, what byte) (*net.TCPConn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = c.Write([]byte{what})
	return c.(*net.TCPConn), err
}

// bulk sends over conns connections for half of the time and receives for the other half. It
// returns the Gbit/s that arrive.
func bulk(addr string, conns int) (float64, error) {
	var received atomic.Int64
	up, err := rate(&sunk, conns, func(until time.Time) error { return upload(addr, until) })
	if err != nil {
		return 0, err
	}
	down, err := rate(&received, conns, func(until time.Time) error { return download(addr, until, &received) })
	return (up + down) / 2 * 8 / 1e9, err
}

// rate returns the increase of counted per second while work runs in conns goroutines.
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

// cut resets a connection when its time is over, so that no data in flight disturbs the next
// measurement.
func cut(c *net.TCPConn, err error) error {
	c.SetLinger(0)
	c.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// once opens a connection, exchanges one byte and closes it.
func once(addr string) error {
	c, err := dial(addr, echo)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}

// opens returns the number of connections opened per second by 64 workers.
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

// openLatency returns the median time of once for one worker, in microseconds.
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

// requests returns the number of HTTP requests answered per second over 32 connections.
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

// settle is the time after which an idle tunnel holds only the memory that it keeps.
const settle = 3 * time.Second

// idle returns the memory that a thousand connections, each of which has carried a byte, add to
// both ends of a tunnel started for this.
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

// perSecond runs work in that many goroutines, and returns how many times per second they call
// another.
func perSecond(workers int, work func(another func() bool) error) (float64, error) {
	var count atomic.Int64
	began := time.Now()
	end := began.Add(*length)
	err := parallel(workers, func() error {
		return work(func() bool { count.Add(1); return time.Now().Before(end) })
	})
	return float64(count.Load()) / time.Since(began).Seconds(), err
}

// parallel runs work in that many goroutines and returns one of their errors.
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
