package local

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// Decision is a row of a provider's audit log, in the form that florctl prints.
type Decision struct {
	From     string `json:"from"`
	Caller   string `json:"caller"`
	Kind     string `json:"kind"`
	Need     string `json:"need"`
	Decision string `json:"decision"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	Key      string `json:"key"`
	Replayed bool   `json:"replayed"` // whether the answer repeats a recorded answer

	Enrolment bool `json:"enrolment"` // whether a host without a certificate proved its identity by its host key
}

// Audit returns the audit log of a provider. The oldest row is first.
func (o Operator) Audit(ctx context.Context, h *Host) ([]Decision, error) {
	out, err := o.Run(ctx, "flor-provider", "audit", "--settings", filepath.Join(h.Dir, "provider.hujson"), "--json")
	if err != nil {
		return nil, err
	}
	var all []Decision
	for line := range strings.Lines(out) {
		var d Decision
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			return nil, fmt.Errorf("audit: %w: %s", err, line)
		}
		all = append(all, d)
	}
	return all, nil
}
