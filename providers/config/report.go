package config

import (
	"encoding/json"
	"fmt"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/server"
)

// Receive keeps the report with the highest sequence, whatever order they arrive in. Of the
// rest it reads nothing: a host of a newer release may report more.
func (p Provider) Receive(c server.Call, last, report []byte) (keep []byte, answer any, err error) {
	malformed := func(what any) error {
		return api.Errorf(api.Invalid, api.CodeMalformed, "report of %s: %v", c.Caller.Short(), what)
	}
	var fields map[string]json.RawMessage
	if err := florete.Decode(report, &fields); err != nil {
		return nil, nil, malformed(err)
	}
	r := florete.ReceivedReport{Received: florete.TimeOf(c.Now), Report: report}
	if err := json.Unmarshal(fields["sequence"], &r.Sequence); err != nil || r.Sequence <= 0 {
		return nil, nil, malformed(fmt.Sprintf("sequence %.40q: want an integer above zero", fields["sequence"]))
	}
	var kept florete.ReceivedReport
	if last != nil {
		if err := json.Unmarshal(last, &kept); err != nil {
			return nil, nil, err
		}
	}
	if r.Sequence <= kept.Sequence {
		return nil, api.Reported{Sequence: kept.Sequence, Rotate: kept.Rotate}, nil
	}
	if r.Rotate, err = ordered(kept.Rotate, r); err != nil {
		return nil, nil, malformed(err)
	}
	keep, err = json.Marshal(r)
	return keep, api.Reported{Sequence: r.Sequence, Rotate: r.Rotate}, err
}

// ordered are the rotations that the host has not reported yet, of needs that it has.
func ordered(rotate map[string]int, r florete.ReceivedReport) (map[string]int, error) {
	if len(rotate) == 0 {
		return nil, nil
	}
	report, err := r.Decode()
	if err != nil {
		return nil, err
	}
	left := map[string]int{}
	for _, n := range report.Needs {
		if rotate[n.ID] > n.Rotations {
			left[n.ID] = rotate[n.ID]
		}
	}
	return left, nil
}
