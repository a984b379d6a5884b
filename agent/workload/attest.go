package workload

import (
	"context"
	"fmt"
	"net"
	"slices"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/florete/florete/agent/forward/caller"
)

// attestation tells the gRPC server which process has connected. The kernel identifies the process,
// so no handshake is necessary. The type implements credentials.TransportCredentials.
type attestation struct{}

// client is the process that has opened a connection to the Workload API.
type client struct {
	credentials.CommonAuthInfo
	*caller.Peer
}

// AuthType returns "pidfd", the name of the method that identifies a client. It implements
// credentials.AuthInfo.
func (client) AuthType() string { return "pidfd" }

// held is a connection that keeps a handle of the client's process, and releases the handle when it
// is closed.
type held struct {
	net.Conn
	peer *caller.Peer
}

func (c *held) Close() error {
	err := c.Conn.Close()
	if err == nil { // only after the first Close
		c.peer.Close()
	}
	return err
}

func (attestation) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	p, err := caller.NewPeer(conn.(syscall.Conn))
	if err != nil {
		return nil, nil, err
	}
	level := credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity} // the kernel guarantees both
	return &held{conn, p}, client{level, p}, nil
}

func (attestation) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, fmt.Errorf("of servers alone")
}

func (attestation) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "pidfd"}
}

func (a attestation) Clone() credentials.TransportCredentials { return a }
func (attestation) OverrideServerName(string) error           { return nil }

// clientOf returns the client that has made the request with this context.
func clientOf(ctx context.Context) client {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(client)
}

// header is the name of a header that each request must have (SPIFFE Workload Endpoint, section 5).
// An attacker who can make a client send requests to other addresses cannot add this header.
const header = "workload.spiffe.io"

func checkHeader(ctx context.Context) error {
	if md, _ := metadata.FromIncomingContext(ctx); !slices.Equal(md.Get(header), []string{"true"}) {
		return status.Errorf(codes.InvalidArgument, "request without the header %s: true, which clients of the SPIFFE Workload API send", header)
	}
	return nil
}

func requireHeader(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := checkHeader(ctx); err != nil {
		return nil, err
	}
	return handle(ctx, req)
}

func requireHeaderOfStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if err := checkHeader(stream.Context()); err != nil {
		return err
	}
	return handle(srv, stream)
}
