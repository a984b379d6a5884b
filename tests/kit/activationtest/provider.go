package activationtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	providerssh "github.com/florete/florete/providers/ssh"
	"github.com/florete/florete/tests/kit"
)

// Provider is a simulated provider. It grants every request that has a valid proof, and gives the
// same answer to a repeated request. Its methods make it fail in various ways, such as refusing
// requests (SetRefuse) or losing answers (SetLose).
type Provider struct {
	Lifetime time.Duration // lifetime of certificates; zero means a day for SVIDs, and an hour for SSH certificates

	cluster  *Cluster
	id       spiffe.ID
	listener net.Listener
	server   *http.Server
	ended    chan struct{}

	mu      sync.Mutex
	svid    *tls.Certificate
	issuing *ca.Authority // issuer of svid
	down    bool
	calls   []Call
	answers map[string]hostapi.Answer
	offer   []hostapi.SignedDocument
	list    trust.SignedRevocations
	refuse  func(Call) *hostapi.Error
	lose    func(Call) bool
	rotated map[string]int // number of rotations, by need ID

	listNumber int64 // number of the revocation list; zero if there is none
	reports    []Received
	highest    int64
	orders     map[string]int
	log        auditLog
	crl        hostapi.CRL
	crls       int // number of requests for a CRL

	watching bool
	watches  []Call
	unknown  []Call
	accepted map[net.Conn]bool              // open connections
	enrolled map[string][]*x509.Certificate // certificates issued on a connection, by channel binding
	opened   int
	revision int64         // revision of the offer
	changed  chan struct{} // closed and replaced together with the offer
}

// Call is one request that a Provider received.
type Call struct {
	At       time.Time
	Path     string
	Need     string
	Serial   int64
	Rotation int
	Key      string
	Body     string
	Enrols   bool
	Has      string // tag of the documents that the node has
	Refused  bool   // the connection was refused, because nobody was listening
}

// Start starts a provider with the given name. Hosts reach it at the address name:1 through the
// function that Dial returns.
func (c *Cluster) Start(name string) *Provider { return c.Serve(name, kit.NewPipe()) }

// Serve starts a provider with the given name that accepts connections from the listener l.
func (c *Cluster) Serve(name string, l net.Listener) *Provider {
	p := &Provider{cluster: c, id: kit.ProviderID(name, "cert"), listener: l, answers: map[string]hostapi.Answer{}, rotated: map[string]int{}, ended: make(chan struct{}), changed: make(chan struct{}), accepted: map[net.Conn]bool{}, enrolled: map[string][]*x509.Certificate{}}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return p.certificate(), nil
		},
	}
	p.server = &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0), ConnState: p.connection}
	go func() {
		defer close(p.ended)
		_ = p.server.Serve(tls.NewListener(p.listener, config))
	}()
	return p
}

// certificate returns the SVID of the provider, which serves several connections: to issue one takes
// as long as half a handshake.
func (p *Provider) certificate() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if issuing := p.cluster.CA.Issuing; p.svid == nil || p.issuing != issuing || time.Until(p.svid.Leaf.NotAfter) < time.Hour/2 {
		p.svid, p.issuing = p.cluster.CA.Issue(p.id, time.Hour), issuing
	}
	return p.svid
}

// Stop stops the provider.
func (p *Provider) Stop() {
	p.server.Close()
	<-p.ended
}

// SetDown takes the provider down, or brings it up again. While the provider is down, the function
// that Dial returns fails with ECONNREFUSED.
func (p *Provider) SetDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// SetRefuse makes the provider call refuse for each request. If refuse returns an error, the
// request is refused with it. If refuse returns nil, the request is granted. If it panics, the
// provider closes the connection without an answer. A nil refuse makes the provider grant all
// requests.
func (p *Provider) SetRefuse(refuse func(Call) *hostapi.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// SetOrders sets the secret rotations that an operator has ordered. The map contains, for each need
// ID, the number of the ordered rotation. Hosts learn the orders from the answer to their next
// report.
func (p *Provider) SetOrders(rotate map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orders = rotate
}

// SetLose makes the provider lose answers. If lose returns true for a request, the provider handles
// the request but closes the connection instead of answering.
func (p *Provider) SetLose(lose func(Call) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = lose
}

// Rotate makes the provider replace the secret of a need.
func (p *Provider) Rotate(need string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rotated[need]++
}

// Forget makes the provider forget how often it has rotated the secret of a need, as if it had lost
// its state.
func (p *Provider) Forget(need string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rotated, need)
}

// Rotated returns how often the secret of a need was rotated.
func (p *Provider) Rotated(need string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rotated[need]
}

// Offer sets the documents that the provider returns to the node.
func (p *Provider) Offer(docs ...hostapi.SignedDocument) {
	p.serve(func() { p.offer = docs })
}

// Revoke sets the revocation list that the provider returns to hosts. A host whose own list has a
// lower number than the given one receives the list.
func (p *Provider) Revoke(number int64, list trust.SignedRevocations) {
	p.serve(func() { p.listNumber, p.list = number, list })
}

// artifact returns the documents and the revocation list that the provider has for the node that
// sent the request.
func (p *Provider) artifact(r *http.Request) hostapi.Artifact {
	a := hostapi.Artifact{Documents: p.offer, Revision: p.revision}
	if has, err := strconv.ParseInt(r.Header.Get(hostapi.HeaderRevocations), 10, 64); err == nil && has < p.listNumber {
		a.Revocations = &p.list
	}
	return a
}

// serve calls change, which changes the documents or the revocation list, and wakes the hosts that
// wait for newer ones.
func (p *Provider) serve(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.revision++
	close(p.changed)
	p.changed = make(chan struct{})
}

// Calls returns the requests that the provider has received for the need with the given ID, in the
// order of their arrival. If need is empty, Calls returns the requests for all needs.
func (p *Provider) Calls(need string) (calls []Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if need == "" || c.Need == need {
			calls = append(calls, c)
		}
	}
	return calls
}

// Dial returns a function, for Config.Dial, that connects to test providers. The map contains the
// providers by the host part of their address, such as forge for forge:1.
func Dial(providers map[string]*Provider) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		name, _, _ := net.SplitHostPort(address)
		p := providers[name]
		p.mu.Lock()
		down := p.down
		if down {
			p.calls = append(p.calls, Call{At: time.Now(), Refused: true})
		}
		p.mu.Unlock()
		if down {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return p.listener.(*kit.Pipe).Dial(ctx)
	}
}

func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == hostapi.PathNonce {
		reply(w, hostapi.Nonce{Nonce: "once"}, nil)
		return
	}
	if r.URL.Path == hostapi.PathReport {
		p.receive(w, r)
		return
	}
	if r.URL.Path == hostapi.PathWatch {
		p.watch(w, r)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/checkpoint") {
		p.checkpoint(w, r)
		return
	}
	if r.URL.Path == hostapi.PathCRL(document.KindCert) {
		p.sendCRL(w, r)
		return
	}
	call := Call{At: time.Now(), Path: r.URL.Path, Key: r.Header.Get(hostapi.HeaderKey), Has: r.Header.Get(hostapi.HeaderHas)}
	var q hostapi.Request
	if r.Method == http.MethodGet {
		call.Need = "config-documents"
		call.Serial, _ = strconv.ParseInt(r.URL.Query().Get("serial"), 10, 64)
		proof, err := base64.StdEncoding.DecodeString(r.Header.Get(hostapi.HeaderDevice))
		p.cluster.must(err)
		q.Device = string(proof)
	} else if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		reply(w, nil, hostapi.Errorf(hostapi.CodeMalformed, "%v", err))
		return
	} else {
		call.Need, call.Serial, call.Rotation, call.Body, call.Enrols = q.Need, q.Serial, q.Rotation, string(q.Body), q.Proof != nil
	}
	p.mu.Lock()
	p.calls = append(p.calls, call)
	refuse, lose := p.refuse, p.lose
	p.mu.Unlock()
	if e := p.authenticate(r.TLS, q); e != nil {
		reply(w, nil, e)
		return
	}
	if refuse != nil {
		if e := refuse(call); e != nil {
			reply(w, nil, e)
			return
		}
	}
	if r.Method == http.MethodGet {
		p.mu.Lock()
		a := p.artifact(r)
		p.mu.Unlock()
		if len(a.Documents) > 0 && r.Header.Get(hostapi.HeaderHas) == a.Tag() && a.Revocations == nil {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		reply(w, a, nil)
		return
	}
	answer, err := p.answer(call.Key, q)
	if chain, invalid := trust.ParseCertificates([]byte(answer.Values["svid"])); q.Proof != nil && invalid == nil {
		binding, err := hostapi.ChannelBinding(r.TLS)
		p.cluster.must(err)
		p.mu.Lock()
		p.enrolled[string(binding)] = chain
		p.mu.Unlock()
	}
	if lose != nil && lose(call) {
		panic(http.ErrAbortHandler)
	}
	reply(w, answer, err)
}

// receive stores a report that a host sent.
func (p *Provider) receive(w http.ResponseWriter, r *http.Request) {
	proof, err := base64.StdEncoding.DecodeString(r.Header.Get(hostapi.HeaderDevice))
	p.cluster.must(err)
	if e := p.authenticate(r.TLS, hostapi.Request{Device: string(proof)}); e != nil {
		reply(w, nil, e)
		return
	}
	received := Received{At: time.Now()}
	p.cluster.must(json.NewDecoder(r.Body).Decode(&received.Report))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports = append(p.reports, received)
	reply(w, hostapi.Reported{Sequence: p.highest + received.Sequence, Rotate: p.orders}, nil)
}

// Received is a report from a host, with the time at which the provider received it.
type Received struct {
	At time.Time
	hostreport.Report
}

// Reports returns the reports that the provider has received from hosts.
func (p *Provider) Reports() []Received {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reports)
}

// Ahead makes the provider answer each report with a sequence number that is higher by n than the
// number in the report, as if the provider had already received later reports.
func (p *Provider) Ahead(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.highest = n
}

// authenticate checks the proofs of a request. These are the node's SVID and the device proof or,
// for a host that enrols, the enrolment proof.
func (p *Provider) authenticate(cs *tls.ConnectionState, q hostapi.Request) *hostapi.Error {
	binding, err := hostapi.ChannelBinding(cs)
	p.cluster.must(err)
	if q.Proof == nil {
		chain := cs.PeerCertificates
		if len(chain) == 0 {
			p.mu.Lock()
			chain = p.enrolled[string(binding)]
			p.mu.Unlock()
		}
		id, err := hostapi.Peer(chain, p.cluster.trusts(), x509.ExtKeyUsageClientAuth)
		if err == nil && id != Node {
			err = fmt.Errorf("%s is a stranger", id)
		}
		if err != nil {
			return hostapi.AsError(err)
		}
		statement := hostapi.DeviceStatement{Node: Node, Provider: p.id, Binding: binding}
		if err := statement.Verify(q.Device, p.cluster.declared()); err != nil {
			return hostapi.Errorf(hostapi.CodeDeviceKey, "%v", err)
		}
		return nil
	}
	var body hostapi.CertBody
	if err := json.Unmarshal(q.Body, &body); err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "%v", err)
	}
	csr, _ := pem.Decode([]byte(body.CSR))
	statement := hostapi.Statement{Node: Node, Provider: p.id, Nonce: "once", CSR: csr.Bytes, Binding: binding}
	if err := statement.Verify(q.Proof, p.cluster.declared()); err != nil {
		return hostapi.Errorf(hostapi.CodeUntrusted, "%v", err)
	}
	return nil
}

func (p *Provider) answer(key string, q hostapi.Request) (hostapi.Answer, *hostapi.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var body hostapi.CertBody
	switch now := p.rotated[q.Need]; q.Rotation {
	case 0, now:
	case now + 1:
		if err := json.Unmarshal(q.Body, &body); err == nil && body.CSR != "" {
			return hostapi.Answer{}, hostapi.Errorf(hostapi.CodeRotation, "no secret to rotate")
		}
		p.rotated[q.Need]++
	default:
		return hostapi.Answer{}, hostapi.Errorf(hostapi.CodeRotation, "rotation %d requested, %d is in force", q.Rotation, now)
	}
	rotated := p.rotated[q.Need]
	key = fmt.Sprint(key, rotated)
	var user hostapi.SSHBody
	_ = json.Unmarshal(q.Body, &user)
	if a, ok := p.answers[key]; ok && (user.PublicKey == "" || time.Until(time.Unix(a.Expires, 0)) > cmp.Or(p.Lifetime, time.Hour)-providerssh.Repeated) {
		return a, nil
	}
	a := hostapi.Answer{Values: map[string]string{
		"clientId": "outline", "clientSecret": fmt.Sprintf("secret-%d", q.Generation), "issuer": "http://auth",
		"ca": string(ssh.MarshalAuthorizedKey(p.cluster.SSH.PublicKey())),
	}}
	if rotated > 0 {
		a.Values["clientSecret"] += fmt.Sprintf(".%d", rotated)
		a.Values[hostapi.ValueRotation] = strconv.Itoa(rotated)
	}
	if err := json.Unmarshal(q.Body, &body); err == nil && body.CSR != "" {
		block, _ := pem.Decode([]byte(body.CSR))
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || csr.CheckSignature() != nil {
			return a, hostapi.Errorf(hostapi.CodeMalformed, "CSR: %v", err)
		}
		lifetime := p.Lifetime
		if lifetime == 0 {
			lifetime = 24 * time.Hour
		}
		now, issuing := time.Now(), p.cluster.CA.Issuing
		svid, err := issuing.Issue(ca.SVID{ID: body.ID, Node: Node.Name(), Key: csr.PublicKey, Until: now.Add(lifetime)}, now)
		p.cluster.must(err)
		a = hostapi.Answer{Expires: now.Add(lifetime).Unix(), Values: map[string]string{
			"svid": string(ca.EncodeCertificates(svid, issuing.Certificate)), "bundle": "whatever the provider says",
		}}
	}
	if user.PublicKey != "" {
		public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(user.PublicKey))
		if err != nil {
			return a, hostapi.Errorf(hostapi.CodeMalformed, "publicKey: %v", err)
		}
		now := time.Now()
		until := now.Add(cmp.Or(p.Lifetime, time.Hour))
		c, err := providerssh.Certify(p.cluster.SSH, public, user.ID, Node.Name(), now, until)
		p.cluster.must(err)
		a = hostapi.Answer{Expires: until.Unix(), Values: map[string]string{"certificate": string(ssh.MarshalAuthorizedKey(c))}}
	}
	p.answers[key] = hostapi.Answer{Values: maps.Clone(a.Values), Expires: a.Expires}
	return a, nil
}

func reply(w http.ResponseWriter, answer any, e *hostapi.Error) {
	w.Header().Set("Content-Type", "application/json")
	if e != nil {
		w.WriteHeader(e.Status())
		answer = e
	}
	_ = json.NewEncoder(w).Encode(answer)
}
