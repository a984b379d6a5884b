package activation

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// codeAccount is local and transient: the owner of files does not exist.
const codeAccount = "account"

// attempt counts an attempt, which joins a pass, and returns the work it is.
func (a *activation) attempt(n *need, pass *fetch.Pass) func(context.Context) outcome {
	last := n.state.Error
	number := n.state.Begin(a.observe(n))
	n.key = a.host.KeySeen()
	attempt := fetch.Attempt{
		Need: n.Need, Digest: n.digest, Answers: n.state.Answers, Rotation: n.state.WantRotation,
		Provider: a.provider(n, number),
		Enrol:    last != nil && (last.Code == hostapi.CodeClock || last.Code == hostapi.CodeUntrusted),
	}
	proof := a.prover.proof
	getCRL, noteCRL := a.crlWith(n, pass), func() {}
	pass.Join()
	enrols := a.host.IsNode(n.Need)
	if enrols {
		pass.Join() // until what waits for it is begun
	}
	var documents func(context.Context) (hostapi.Artifact, *fetch.Error, func())
	if n.Kind == document.KindConfig {
		documents = a.artifact(pass, attempt)
	}
	return func(ctx context.Context) outcome {
		defer pass.Leave()
		var answer hostapi.Answer
		var artifact hostapi.Artifact
		var failed *fetch.Error
		release := func() {}
		if n.Kind == document.KindConfig {
			artifact, failed, release = documents(ctx)
		} else {
			answer, attempt.Provider, failed = a.fetch(ctx, pass, attempt, n.dir)
			if failed == nil && getCRL != nil && attempt.Provider != "" {
				noteCRL = getCRL(ctx, attempt.Provider)
			}
		}
		return outcome{n, func() {
			n.busy, n.seen = false, seen{}
			if enrols {
				defer pass.Leave()
			}
			if failed == nil && n.Kind == document.KindConfig {
				if proof.Commit != nil {
					a.proved(proof, attempt.Provider)
				}
				if e := a.accept(ctx, artifact); e != nil {
					failed = &fetch.Error{Error: e, Received: true}
				}
			}
			release()
			switch {
			case failed == nil:
				a.fulfil(n, attempt.Provider, answer)
				noteCRL()
				if enrols {
					a.endAfter()
					a.after = pass.After()
				}
			case ctx.Err() != nil: // cut off by this host: what is on disk holds
				delete(a.tried, n.ID)
			case attempt.Rotation != 0 && failed.Code == hostapi.CodeRotation:
				a.dropRotation(n, attempt.Provider, failed)
			default:
				a.fail(n, attempt.Provider, failed)
				if a.proves(n) {
					a.unproved(n, failed, time.Now().Round(0))
				}
			}
		}}
	}
}

// begins returns the pass for what is due now: after this host enrolled the one that goes on over that
// connection.
func (a *activation) begins() *fetch.Pass {
	pass := a.after
	a.after = nil
	if pass == nil {
		pass = a.host.Pass()
	}
	return pass
}

// endAfter closes the connection on which this host enrolled where nothing follows.
func (a *activation) endAfter() {
	if a.after != nil {
		a.after.Leave()
		a.after = nil
	}
}

// fetch gets an answer, of the provider that it returns or of an identity file, and delivers it.
func (a *activation) fetch(ctx context.Context, pass *fetch.Pass, attempt fetch.Attempt, dir delivery.Dir) (answer hostapi.Answer, provider string, failed *fetch.Error) {
	uid, gid, err := a.owner(a.deliverTo(attempt.Need))
	if err != nil {
		return answer, "", &fetch.Error{Error: hostapi.Errorf(hostapi.Transient, codeAccount, "%v", err)}
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
		return hostapi.Answer{}, provider, &fetch.Error{Error: hostapi.Errorf(hostapi.Transient, fetch.CodeDisk, "delivery: %v", err)}
	}
	return answer, provider, nil
}

// files are values as the files that a need delivers.
func files(n document.Need, values map[string]string, uid, gid int) (map[string]delivery.File, *hostapi.Error) {
	files := map[string]delivery.File{}
	for name, f := range n.Deliver.Files {
		value, ok := values[f.Value]
		if !ok {
			return nil, hostapi.Errorf(hostapi.Invalid, hostapi.CodeMalformed, "answer has no value %q for file %s", f.Value, name)
		}
		mode, err := f.Perm()
		if err != nil {
			return nil, hostapi.Errorf(hostapi.Invalid, hostapi.CodeMalformed, "file %s: %v", name, err)
		}
		files[name] = delivery.File{Data: []byte(value), Mode: fs.FileMode(mode), UID: uid, GID: gid}
	}
	return files, nil
}

func (a *activation) fulfil(n *need, provider string, answer hostapi.Answer) {
	if a.host.IsNode(n.Need) {
		a.reinstate()
	}
	n.foreign = false
	n.state.Fulfil(a.observe(n), provider, answer)
	a.save(n)
	a.proveNow(n)
	a.fresh = time.Time{}
	a.forget(n)
	a.forgetEnrolled()
	due, _ := n.state.Due(n.Renew)
	a.report(event.Event{Event: event.Fulfilled, Need: n.ID, Provider: provider, Message: n.origin(), Attempt: n.state.Attempts, Next: due})
}

// reinstate makes due what was denied to the node's certificate of before: now, and where
// this process ends first, or other documents come in force.
func (a *activation) reinstate() {
	for _, n := range a.needs {
		if n.state.Reinstated(time.Now().Round(0)) {
			a.save(n)
		}
	}
	a.watcher.next, a.watcher.failures = time.Time{}, 0
}

func (a *activation) fail(n *need, provider string, failed *fetch.Error) {
	if !failed.Received {
		provider = ""
	}
	n.state.Fail(a.observe(n), provider, failed.Error, a.backoff(n))
	a.save(n)
	a.reportFailed(n, provider, failed)
}

// ownMost is the longest wait for a provider of this host itself: attempts harm nobody else,
// and whoever installs what it lacks sees that at once.
const ownMost = 10 * time.Second

// endedMost is the longest wait of a need whose certificate has ended: nothing works without it.
const endedMost = 20 * time.Second

func (a *activation) backoff(n *need) needstate.Backoff {
	b := a.Backoff
	if n.Kind == document.KindCert && !n.state.Expires.IsZero() {
		most := max(time.Until(n.state.Expires.Time), 0) + endedMost
		b.Max = min(cmp.Or(b.Max, needstate.LongestWait), most)
	}
	if slices.Contains(n.Providers, a.set.Manifest.Host) {
		b.Max = min(cmp.Or(b.Max, ownMost), ownMost)
	}
	return b
}

// dropRotation goes on with the secret in force.
func (a *activation) dropRotation(n *need, provider string, failed *fetch.Error) {
	a.reportFailed(n, provider, failed)
	n.state.DropRotation(time.Now().Round(0))
	a.save(n)
	a.forget(n)
}

func (a *activation) reportFailed(n *need, provider string, failed *fetch.Error) {
	a.report(event.Event{
		Event: event.Failed, Need: n.ID, Provider: provider, Attempt: n.state.Attempts,
		Kind: failed.Kind, Code: failed.Code, Message: failed.Message, Next: n.state.Next.Time,
	})
}

// owner is whom the files of a delivery belong to.
func (a *activation) owner(d document.Deliver) (uid, gid int, err error) {
	if a.Undivided {
		return -1, -1, nil
	}
	return delivery.Owner(d)
}
