package activation

import (
	"context"
	"time"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/hostapi"
)

// codeAccount is the code of the error returned when the account that should own the files does not
// exist on this host. Activation tries again later.
var codeAccount = hostapi.Code{Name: "account", Class: hostapi.Transient}

// attempt prepares one request for a need and returns the function that sends it. The request
// belongs to the given pass. The attempts of a need are numbered from one, and the number selects
// the provider that is asked.
func (a *activation) attempt(n *need, pass *fetch.Pass, number int) func(context.Context) func() {
	last := n.State.Error
	attempt := fetch.Attempt{
		Need: n.Need.Need, Digest: n.Digest, Answers: n.State.Answers, Rotation: n.State.WantRotation,
		Provider: n.Providers[(number-1)%len(n.Providers)],
		Enrol:    last != nil && (last.Code == hostapi.CodeClock.Name || last.Code == hostapi.CodeUntrusted.Name),
	}
	getCRL, noteCRL := a.crls.With(a.table, n.Need, pass), func() {}
	pass.Join()
	enrols := a.host.IsNode(attempt.Need)
	if enrols {
		pass.Join() // until the needs that depend on it have begun
	}
	return func(ctx context.Context) func() {
		defer pass.Leave()
		answer, provider, failed := a.fetch(ctx, pass, attempt, n.Dir)
		if failed == nil && getCRL != nil && provider != "" {
			noteCRL = getCRL(ctx, provider)
		}
		return func() {
			n.End()
			if enrols {
				defer pass.Leave()
			}
			switch {
			case failed == nil:
				a.fulfil(n, provider, answer)
				noteCRL()
				if enrols {
					a.endAfter()
					a.after = pass.After()
				}
			case ctx.Err() != nil:
				n.CutOff()
			case attempt.Rotation != 0 && failed.Code == hostapi.CodeRotation.Name:
				n.DropRotation(provider, failed)
			default:
				n.Fail(provider, failed)
				a.documents.Failed(n.Need, failed)
			}
		}
	}
}

// begins returns the pass for the needs that are due now. Directly after enrolment, this is the
// pass that continues on the connection used for enrolling.
func (a *activation) begins() *fetch.Pass {
	pass := a.after
	a.after = nil
	if pass == nil {
		pass = a.host.Pass()
	}
	return pass
}

// endAfter closes the connection on which this host enrolled, if no request has used it since.
func (a *activation) endAfter() {
	if a.after != nil {
		a.after.Leave()
		a.after = nil
	}
}

// fetch obtains the answer to a need and delivers its files. The answer comes from the identity
// file of this host if that contains it, and from a provider otherwise. The returned provider is
// empty if none was reached.
func (a *activation) fetch(ctx context.Context, pass *fetch.Pass, attempt fetch.Attempt, dir delivery.Dir) (answer hostapi.Answer, provider string, failed *fetch.Error) {
	uid, gid, err := a.owner(a.deliverTo(attempt.Need))
	if err != nil {
		return answer, "", &fetch.Error{Error: hostapi.Errorf(codeAccount, "%v", err)}
	}
	answer, enrolled, failed := a.host.Enrolled(attempt.Need)
	if !enrolled && failed == nil {
		answer, failed = pass.Fetch(ctx, attempt)
		provider = a.host.Reached(attempt)
	}
	if failed != nil {
		return hostapi.Answer{}, provider, failed
	}
	files, bad := files(attempt.Need, answer.Values, uid, gid)
	if bad != nil {
		return hostapi.Answer{}, provider, &fetch.Error{Error: bad, Received: true}
	}
	if _, err := dir.Deliver(files); err != nil {
		return hostapi.Answer{}, provider, &fetch.Error{Error: hostapi.Errorf(fetch.CodeDisk, "delivery: %v", err)}
	}
	return answer, provider, nil
}

func (a *activation) fulfil(n *need, provider string, answer hostapi.Answer) {
	if a.host.IsNode(n.Need.Need) {
		for _, other := range a.table.Needs {
			other.Reinstate(time.Now().Round(0)) // requests that were denied because of the old certificate
		}
	}
	n.Fulfil(provider, answer)
	a.documents.Fulfilled(n.Need)
	a.forgetEnrolled()
}
