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
func (a Artifacts) Receive(c server.Call, last, report []byte) (keep []byte, answer any, err error) {
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
		return nil, api.Reported{Sequence: kept.Sequence}, nil
	}
	keep, err = json.Marshal(r)
	return keep, api.Reported{Sequence: r.Sequence}, err
}
