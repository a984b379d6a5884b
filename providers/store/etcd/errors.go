package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// unanswered is whether a request may have been carried out or not, or another member may
// answer it.
func unanswered(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var e rpctypes.EtcdError
	code := codes.Unknown
	if errors.As(err, &e) {
		code = e.Code()
	} else if s, ok := status.FromError(err); ok {
		code = s.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted:
		return true
	case codes.Unknown: // how a member returns that its own waiting has ended
		message := status.Convert(err).Message()
		if message == context.DeadlineExceeded.Error() || message == context.Canceled.Error() {
			return true
		}
	}
	return errors.Is(err, rpctypes.ErrNotLeader) || errors.Is(err, rpctypes.ErrTooManyRequests)
}
