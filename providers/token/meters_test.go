package token

import (
	"fmt"
	"testing"
	"time"
)

// TestShares checks that a subject that requests as many tokens as it can leaves a part of the
// tenant's tokens to other subjects, and that these together get no more than the tenant's share.
func TestShares(t *testing.T) {
	var m meters
	now := time.Now()
	tenant := &Tenant{name: "acme", TokensPerMinute: 60}
	takes := func(sub string, times int) (n int) {
		for range times {
			if wait, ok := m.take(tenant, sub, now); ok {
				n++
			} else if wait <= 0 || wait > time.Minute {
				t.Errorf("%s is to wait for %s", sub, wait)
			}
		}
		return n
	}
	if n := takes("wiki", 100); n != 45 {
		t.Errorf("one subject has %d tokens, want 45", n)
	}
	if n := takes("alice", 100); n != 7 {
		t.Errorf("the next has %d tokens, want 7", n)
	}
	all := 52
	for i := range 20 {
		all += takes(fmt.Sprint("other-", i), 3)
	}
	if all != 60 {
		t.Errorf("all have %d tokens, want 60", all)
	}
	now = now.Add(time.Minute)
	if n := takes("alice", 3); n != 3 {
		t.Errorf("a minute later alice has %d tokens, want 3", n)
	}
	if n := takes("wiki", 100); n != 42 {
		t.Errorf("a minute later wiki has %d tokens, want 42", n)
	}
	for i := range maxSubjects + 10 {
		now = now.Add(time.Second)
		takes(fmt.Sprint("many-", i), 1)
	}
	if n := len(m.subjects); n > maxSubjects {
		t.Errorf("%d subjects are counted", n)
	}
}
