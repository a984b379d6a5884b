package metrics_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/florete/florete/agent/agenttest"
	"github.com/florete/florete/agent/forward/metrics"
)

func TestPaths(t *testing.T) {
	var c metrics.Tally
	first := c.Begin(metrics.Out, agenttest.Outline, agenttest.Alice)
	second := c.Begin(metrics.Out, agenttest.Outline, agenttest.Alice)
	c.Begin(metrics.In, agenttest.Outline, agenttest.Bob)
	first.Sent.Add(3)
	second.Sent.Add(4)
	second.Received.Add(5)
	first.Done()
	want := []metrics.Path{
		{Side: metrics.In, Target: agenttest.Outline, Caller: agenttest.Bob, Live: 1, Total: 1},
		{Side: metrics.Out, Target: agenttest.Outline, Caller: agenttest.Alice, Live: 1, Total: 2, Sent: 7, Received: 5},
	}
	if got := c.Summary().Paths; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestLast: all are counted, the latest are kept.
func TestLast(t *testing.T) {
	var c metrics.Tally
	if s := c.Summary(); s.Paths == nil || s.Refusals == nil || s.Last == nil {
		t.Errorf("an empty tally has nulls: %+v", s)
	}
	for i := range 100 {
		c.Refuse(metrics.Refusal{Reason: "denied", Detail: fmt.Sprint(i)})
	}
	s := c.Summary()
	if s.Refusals["denied"] != 100 || len(s.Last) != 32 || s.Last[31].Detail != "99" || s.Last[0].Detail != "68" {
		t.Errorf("%d refusals, %d kept, last %+v", s.Refusals["denied"], len(s.Last), s.Last)
	}
}

// TestReasons: a peer that makes up codes does not make the tally grow.
func TestReasons(t *testing.T) {
	var c metrics.Tally
	c.Refuse(metrics.Refusal{Reason: "denied"})
	for i := range 1000 {
		c.Refuse(metrics.Refusal{Reason: fmt.Sprint("code-", i)})
	}
	c.Refuse(metrics.Refusal{Reason: "denied"})
	s := c.Summary()
	if len(s.Refusals) != 65 || s.Refusals["denied"] != 2 || s.Refusals["other"] != 937 || s.Last[30].Reason != "code-999" {
		t.Errorf("%d reasons: %v", len(s.Refusals), s.Refusals)
	}
}
