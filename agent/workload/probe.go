package workload

import (
	"context"
	"fmt"

	api "github.com/spiffe/go-spiffe/v2/proto/spiffe/workload"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Probe returns nil if the Workload API answers a request on a socket. A refusal counts as an
// answer.
func Probe(ctx context.Context, socket string) error {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, header, "true"))
	defer cancel()
	stream, err := api.NewSpiffeWorkloadAPIClient(conn).FetchX509Bundles(ctx, &api.X509BundlesRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil || status.Code(err) == codes.PermissionDenied {
		return nil
	}
	return fmt.Errorf("%s: %s", socket, status.Convert(err).Message())
}
