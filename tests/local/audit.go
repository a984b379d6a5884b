package local

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Decision is a row of a provider's audit log, decoded from the JSON output of flor-provider audit.
type Decision struct {
	From     string `json:"from"`
	Caller   string `json:"caller"`
	Kind     string `json:"kind"`
	Need     string `json:"need"`
	Decision string `json:"decision"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	Key      string `json:"key"`
	Replayed bool   `json:"replayed"` // the provider repeated an earlier answer

	Enrolment bool `json:"enrolment"` // the host had no certificate and proved its identity with its host key
}

// Audit returns the rows of the audit logs of a provider host that are newer than a time, oldest
// first.
func (o Operator) Audit(ctx context.Context, h *Host, after time.Time) ([]Decision, error) {
	out, err := o.Run(ctx, "flor-provider", "audit", "--settings", filepath.Join(h.Dir, "provider.hujson"), "--json", "--after", after.Format(time.RFC3339Nano))
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
