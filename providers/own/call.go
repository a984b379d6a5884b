package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/sockdiag"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
)

// maxMessage is the longest reason of a refusal, in bytes.
const maxMessage = 1 << 10

// output is the JSON that the executable writes: values or an error.
type output struct {
	Values  map[string]string `json:"values"`
	Expires int64             `json:"expires"` // Unix seconds, zero for never
	Error   *struct {
		Kind       hostapi.Class `json:"kind"`
		Message    string        `json:"message"`
		RetryAfter int           `json:"retryAfter"`
	} `json:"error"`
}

// call runs the executable or calls the service, and reads the answer. Only a refusal contains text
// from the output. Other errors do not, because the output may contain a secret.
func (k *Kind) call(ctx context.Context, p *Policy, c call) (a hostapi.Answer, err error) {
	in, err := json.Marshal(c)
	if err != nil {
		return a, err
	}
	var out []byte
	if p.Run != "" {
		out, err = k.run(ctx, p.Run, in, c.Secret)
	} else {
		ctx, cancel := context.WithTimeout(ctx, k.Deadline)
		defer cancel()
		out, err = post(ctx, p.URL, in)
	}
	if err == nil {
		a, err = read(out, p.Values, time.Now())
	}
	if refusal := new(hostapi.Error); err != nil && !errors.As(err, &refusal) {
		err = fmt.Errorf("%s%s: need %s of %s: %w", p.Run, p.URL, c.Need, c.Caller.Short(), err)
	}
	return a, err
}

// read parses an answer and checks that it contains the values that the policy names.
func read(b []byte, values []string, now time.Time) (a hostapi.Answer, err error) {
	var out output
	switch err := strictjson.Decode(b, &out); {
	case len(b) > maxAnswer:
		return a, fmt.Errorf("answer: over %d bytes", maxAnswer)
	case len(bytes.TrimSpace(b)) == 0:
		return a, errors.New("answer: empty, want a JSON object")
	case !utf8.Valid(b) || err != nil && !json.Valid(b):
		return a, fmt.Errorf("answer: %d bytes that are no JSON", len(b))
	case err != nil:
		return a, errors.New(`answer: want {"values":{…}} with strings, "expires" beside it, or {"error":{"kind":…,"message":…,"retryAfter":…}}, and no other fields`)
	}
	if e := out.Error; e != nil {
		return a, refusal(e.Kind, e.Message, e.RetryAfter)
	}
	for _, name := range values {
		if out.Values[name] == "" {
			return a, fmt.Errorf("answer: no value %q, want one", name)
		}
	}
	for name := range out.Values {
		if !slices.Contains(values, name) {
			return a, fmt.Errorf("answer: value %.40q is not among providers.<kind>.answer: %s", name, strings.Join(values, ", "))
		}
	}
	if out.Expires != 0 && out.Expires <= now.Unix() {
		return a, fmt.Errorf("answer: expires at %d, which is over", out.Expires)
	}
	return hostapi.Answer{Values: out.Values, Expires: out.Expires}, nil
}

// refusal returns the error that the host receives if the executable refuses its request.
func refusal(kind hostapi.Class, message string, after int) error {
	switch kind {
	case hostapi.Transient, hostapi.Denied, hostapi.Invalid:
	default:
		return fmt.Errorf("answer: error of kind %.20q, want %q, %q or %q", kind, hostapi.Transient, hostapi.Denied, hostapi.Invalid)
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return hostapi.Errorf(hostapi.Refused(kind), "%s", terminal.Text(message)).After(time.Duration(min(max(after, 0), 3600)) * time.Second)
}

// socket is the prefix of the URL of a service at a Unix socket.
const socket = "unix:"

// post calls a service over a new connection.
func post(ctx context.Context, at string, in []byte) ([]byte, error) {
	t := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10}
	url := at
	t.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		return sockdiag.Dial(ctx, address, nil, sockdiag.System)
	}
	if path, unix := strings.CutPrefix(at, socket); unix {
		url = "http://localhost/"
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.RoundTrip(req) // no redirect
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, hostapi.Errorf(hostapi.CodeMissing, "service %q: nobody answers on this provider: start it there", at)
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d, want 200", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
}
