package server

import (
	"errors"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
)

// grant finds the grant of a caller's request.
func (f *compiledPolicy) grant(caller spiffe.ID, kind string, r hostapi.Request) (document.Grant, error) {
	at := grantKey{caller, r.Need}
	g, ok := f.grants[at]
	if !ok {
		return g, hostapi.Errorf(hostapi.CodeNotGranted, "need %q of kind %q: the policy does not grant it to %s", r.Need, kind, caller)
	}
	want, err := hostapi.Asked(r.Body)
	if err != nil {
		return g, hostapi.Errorf(hostapi.CodeMalformed, "need %q: body: %v", r.Need, err)
	}
	if string(want) != f.requests[at] {
		return g, hostapi.Errorf(hostapi.CodeMismatch, "need %q: requested %s, the policy grants %s to %s", r.Need, want, f.requests[at], caller)
	}
	switch {
	case r.Generation < g.Generation:
		return g, hostapi.Errorf(hostapi.CodeRotated, "need %q: generation %d requested, the policy grants generation %d to %s: deploy the host's newest manifest",
			r.Need, r.Generation, g.Generation, caller)
	case r.Generation > g.Generation:
		return g, hostapi.Errorf(hostapi.CodeMismatch, "need %q: generation %d requested, the policy grants generation %d to %s", r.Need, r.Generation, g.Generation, caller)
	}
	return g, nil
}

// policyBehind converts an error to a refusal. The refusal is transient if the host has a newer
// deployment than this provider, because the provider's next policy may grant the request.
func (f *compiledPolicy) policyBehind(err error, serial int64) error {
	var e *hostapi.Error
	if !errors.As(err, &e) || e.Kind != hostapi.Denied || e.Code == hostapi.CodeReplayed.Name || e.Code == hostapi.CodeRevoked.Name || serial <= f.serial {
		return err
	}
	return hostapi.Errorf(hostapi.CodePolicyBehind, "%s: the host's manifest has serial %d, the policy here %d: deploy this provider",
		e.Message, serial, f.serial)
}
