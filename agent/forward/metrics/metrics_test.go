package metrics_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/florete/florete/agent/agenttest"
	"github.com/florete/florete/agent/forward/metrics"
)

func TestPaths(t *testing.T) {
	var c metrics.Counters
	first := c.Begin(metrics.Out, agenttest.Outline, agenttest.Alice)
	second := c.Begin(metrics.Out, agenttest.Outline, agenttest.Alice)
	c.Begin(metrics.In, agenttest.Outline, agenttest.Bob)
	first.Sent.Add(3)
	second.Sent.Add(4)
	second.Received.Add(5)
	first.Done()
	want := []metrics.Path{
		{Direction: metrics.In, Target: agenttest.Outline, Caller: agenttest.Bob, Live: 1, Total: 1},
		{Direction: metrics.Out, Target: agenttest.Outline, Caller: agenttest.Alice, Live: 1, Total: 2, Sent: 7, Received: 5},
	}
	if got := c.Summary().Paths; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestLast: all are counted, the latest are kept.
func TestLast(t *testing.T) {
	var c metrics.Counters
	if s := c.Summary(); s.Paths == nil || s.Refusals == nil || s.RecentRefusals == nil {
		t.Errorf("an empty tally has nulls: %+v", s)
	}
	for i := range 100 {
		c.Refuse(metrics.Refusal{Reason: "denied", Detail: fmt.Sprint(i)})
	}
	s := c.Summary()
	if s.Refusals["denied"] != 100 || len(s.RecentRefusals) != 32 || s.RecentRefusals[31].Detail != "99" || s.RecentRefusals[0].Detail != "68" {
		t.Errorf("%d refusals, %d kept, recent %+v", s.Refusals["denied"], len(s.RecentRefusals), s.RecentRefusals)
	}
}

// TestReasons: a peer that makes up codes does not make the tally grow.
func TestReasons(t *testing.T) {
	var c metrics.Counters
	c.Refuse(metrics.Refusal{Reason: "denied"})
	for i := range 1000 {
		c.Refuse(metrics.Refusal{Reason: fmt.Sprint("code-", i)})
	}
	c.Refuse(metrics.Refusal{Reason: "denied"})
	s := c.Summary()
	if len(s.Refusals) != 65 || s.Refusals["denied"] != 2 || s.Refusals["other"] != 937 || s.RecentRefusals[30].Reason != "code-999" {
		t.Errorf("%d reasons: %v", len(s.Refusals), s.Refusals)
	}
}
