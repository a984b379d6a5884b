package acl

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

const (
	// A burst has the bytes of 1/parts of a second.
	parts = 16
	// smallest is the minimum number of bytes between two waits.
	smallest = 1 << 10
)

// Share is the use of one service by one caller. A nil Share has no limits.
type Share struct {
	service, caller *budget
	// turn is held by the stream that waits for its bytes. All callers of a service thereby get
	// equal parts, regardless of the number of their streams.
	turn chan struct{}
}

// Open counts a TCP connection or UDP session until release is called, or returns an error that
// names the limit it exceeds. release must be called once.
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

// rates returns the current limiters; nil means no limit.
func (s *Share) rates() (caller, service *rate.Limiter) {
	if s == nil {
		return nil, nil
	}
	return s.caller.bytes.Load(), s.service.bytes.Load()
}

// Most returns the number of bytes that may be carried before the next Wait.
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

// Wait waits until n bytes that were carried are within the current rates, or until stop is closed.
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

// pay waits until n bytes, at most one burst, are within the rates.
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
