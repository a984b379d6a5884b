package acl

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

const (
	// parts of a second: how much of its bytes go at once.
	parts = 16
	// smallest is that of the lowest rates.
	smallest = 1 << 10
)

// Share is what one caller has of one service. A nil Share limits nothing.
type Share struct {
	service, caller *budget
	// turn is taken by the stream that waits for its bytes: callers of a service get the
	// same, however many streams each has.
	turn chan struct{}
}

// Open counts a TCP connection or UDP session in until release is called once, or returns
// which limit it exceeds.
func (s *Share) Open() (release func(), err error) {
	if err := s.caller.acquire(); err != nil {
		return nil, err
	}
	if err := s.service.acquire(); err != nil {
		s.caller.release()
		return nil, err
	}
	return func() { s.caller.release(); s.service.release() }, nil
}

// rates are those in force; nil is none.
func (s *Share) rates() (caller, service *rate.Limiter) {
	if s == nil {
		return nil, nil
	}
	return s.caller.bytes.Load(), s.service.bytes.Load()
}

// Most is how many bytes may be carried before the next Wait.
func (s *Share) Most() int { return most(s.rates()) }

func most(rates ...*rate.Limiter) int {
	most := math.MaxInt
	for _, l := range rates {
		if l != nil {
			most = min(most, max(int(l.Limit()/parts), smallest))
		}
	}
	return most
}

// Wait returns when n bytes that were carried are within the rates in force, or once stop is
// closed.
func (s *Share) Wait(stop <-chan struct{}, n int) {
	for n > 0 {
		caller, service := s.rates()
		if caller == nil && service == nil {
			return
		}
		few := min(n, most(caller, service))
		select {
		case s.turn <- struct{}{}:
			stopped := pay(stop, few, caller, service)
			<-s.turn
			if stopped {
				return
			}
		case <-stop:
			return
		}
		n -= few
	}
}

// pay waits until bytes, which a burst is large enough for, are within rates.
func pay(stop <-chan struct{}, n int, rates ...*rate.Limiter) (stopped bool) {
	now, wait := time.Now(), time.Duration(0)
	for _, l := range rates {
		if l != nil {
			wait = max(wait, l.ReserveN(now, n).DelayFrom(now))
		}
	}
	if wait == 0 {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-stop:
		return true
	}
}

// Allow reports whether a datagram of n bytes is within the rates, and counts it if so.
func (s *Share) Allow(n int) bool {
	caller, service := s.rates()
	return (caller == nil || caller.AllowN(time.Now(), n)) && (service == nil || service.AllowN(time.Now(), n))
}
