package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestMemory: memory is returned once after a burst of requests, and again only after another.
// Without requests nothing runs.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken uint64
		var looked, returned int
		m := memory{taken: func() uint64 { looked++; return taken }, giveUp: func() { returned++ }}
		burst := func(lasting time.Duration) {
			for end := time.Now().Add(lasting); time.Now().Before(end); time.Sleep(time.Second) {
				taken += 10 << 20
				m.touch()
			}
		}
		burst(5 * time.Minute)
		if returned != 0 {
			t.Errorf("memory is returned %d times while it is in use", returned)
		}
		time.Sleep(2 * lookAfter)
		if returned != 1 {
			t.Errorf("memory is returned %d times after a burst, want once", returned)
		}
		was := looked
		time.Sleep(time.Hour)
		if looked != was {
			t.Errorf("it is looked at %d times without a request", looked-was)
		}
		m.touch()
		time.Sleep(2 * lookAfter)
		if returned != 1 {
			t.Error("memory is returned after a request that took none")
		}
		taken += worth
		m.touch()
		time.Sleep(2 * lookAfter)
		if returned != 2 {
			t.Errorf("memory is returned %d times after two bursts", returned)
		}
	})
}
