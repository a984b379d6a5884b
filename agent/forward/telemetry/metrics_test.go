package telemetry_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/tests/kit/agenttest"
)

func TestPaths(t *testing.T) {
	var c telemetry.Counters
	first := c.Begin(telemetry.Out, agenttest.Outline, "", agenttest.Alice)
	second := c.Begin(telemetry.Out, agenttest.Outline, "", agenttest.Alice)
	c.Begin(telemetry.In, agenttest.Outline, "", agenttest.Bob)
	c.Begin(telemetry.In, agenttest.Outline, "metrics", agenttest.Bob)
	first.Sent.Add(3)
	second.Sent.Add(4)
	second.Received.Add(5)
	first.Done()
	want := []telemetry.Path{
		{Direction: telemetry.In, Target: agenttest.Outline, Caller: agenttest.Bob, Live: 1, Total: 1},
		{Direction: telemetry.In, Target: agenttest.Outline, Port: "metrics", Caller: agenttest.Bob, Live: 1, Total: 1},
		{Direction: telemetry.Out, Target: agenttest.Outline, Caller: agenttest.Alice, Live: 1, Total: 2, Sent: 7, Received: 5},
	}
	if got := c.Summary().Paths; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestLatency checks that each latency is counted in the bucket of the smallest bound that is not
// below it.
func TestLatency(t *testing.T) {
	var c telemetry.Counters
	conn := c.Begin(telemetry.In, agenttest.Outline, "", agenttest.Bob)
	conn.Opened(telemetry.Bounds[0])
	conn.Opened(telemetry.Bounds[0] + 1)
	conn.Opened(time.Hour)
	conn.Done()
	got := c.Summary().Paths[0].Opens
	want := make([]int64, len(telemetry.Bounds)+1)
	want[0], want[1], want[len(telemetry.Bounds)] = 1, 1, 1
	if got.Nanoseconds != int64(2*telemetry.Bounds[0]+1+time.Hour) || !reflect.DeepEqual(got.Buckets, want) {
		t.Errorf("got %+v", got)
	}
}

// TestKnown checks that refusals are counted per caller and service if the manifest names both.
func TestKnown(t *testing.T) {
	var c telemetry.Counters
	for i := range 3 {
		c.Refuse(telemetry.Refusal{Direction: telemetry.Out, Reason: "not-reachable", Target: fmt.Sprint("made-up-", i), Peer: "mallory"})
	}
	c.Refuse(telemetry.Refusal{Direction: telemetry.In, Reason: "busy", Target: "outline", Peer: "alice", Known: true})
	want := []telemetry.Refused{
		{Direction: telemetry.In, Reason: "busy", Target: "outline", Caller: "alice", Count: 1},
		{Direction: telemetry.Out, Reason: "not-reachable", Count: 3},
	}
	if s := c.Summary(); !reflect.DeepEqual(s.Refused, want) || s.Refusals["not-reachable"] != 3 {
		t.Errorf("got %+v", s)
	}
}

// TestLast checks that all refusals are counted, and the latest are kept.
func TestLast(t *testing.T) {
	var c telemetry.Counters
	if s := c.Summary(); s.Paths == nil || s.Refusals == nil || s.Refused == nil || s.RecentRefusals == nil {
		t.Errorf("an empty tally has nulls: %+v", s)
	}
	for i := range 100 {
		c.Refuse(telemetry.Refusal{Reason: "denied", Detail: fmt.Sprint(i)})
	}
	s := c.Summary()
	if s.Refusals["denied"] != 100 || len(s.RecentRefusals) != 32 || s.RecentRefusals[31].Detail != "99" || s.RecentRefusals[0].Detail != "68" {
		t.Errorf("%d refusals, %d kept, recent %+v", s.Refusals["denied"], len(s.RecentRefusals), s.RecentRefusals)
	}
}

// TestReasons checks that a peer that invents codes does not make the tally grow.
func TestReasons(t *testing.T) {
	var c telemetry.Counters
	c.Refuse(telemetry.Refusal{Reason: "denied"})
	for i := range 1000 {
		c.Refuse(telemetry.Refusal{Reason: fmt.Sprint("code-", i)})
	}
	c.Refuse(telemetry.Refusal{Reason: "denied"})
	s := c.Summary()
	if len(s.Refusals) != 65 || s.Refusals["denied"] != 2 || s.Refusals["other"] != 937 || s.RecentRefusals[30].Reason != "code-999" {
		t.Errorf("%d reasons: %v", len(s.Refusals), s.Refusals)
	}
}
