package control

import (
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/announced"
)

// relayed returns a handler that passes requests on to the process of another kind on this host.
// That process decides by the same policy, and writes the audit row.
func relayed(kind string) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if _, runs := c.policy.Kinds[kind]; !runs {
			return nil, hostapi.Errorf(hostapi.CodeMissingInvalid, "host %s does not provide %s: call one of providers.%[2]s.hosts that provides documents, too", c.policy.Host, kind)
		}
		if announced.From(c.r.Context()).Account != "" {
			return nil, hostapi.Errorf(hostapi.CodeNotGranted, "the process of kind %s knows operators alone, and no accounts of its host: call it through the forwarder", kind)
		}
		if err := announced.Relay(c.Relayed(kind), c.w, c.r); err != nil {
			if c.r.Context().Err() == nil {
				c.Logger.Error("another process does not answer an operator", "kind", kind, "error", err)
			}
			return nil, hostapi.Errorf(hostapi.CodeUnavailable, "the process of kind %s does not answer here: systemctl status '*provider-%[1]s*' there", kind)
		}
		return nil, nil
	}
}
