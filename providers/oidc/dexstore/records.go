package dexstore

import (
	"context"
	"strings"

	"github.com/dexidp/dex/storage"
)

// The types of records that Dex stores.
const (
	authRequests   table[storage.AuthRequest]     = "request"
	authCodes      table[storage.AuthCode]        = "code"
	refreshTokens  table[storage.RefreshToken]    = "refresh"
	sessions       table[storage.OfflineSessions] = "session"
	clients        table[storage.Client]          = "client"
	passwords      table[storage.Password]        = "password"
	connectors     table[storage.Connector]       = "connector"
	deviceRequests table[storage.DeviceRequest]   = "device-request"
	deviceTokens   table[storage.DeviceToken]     = "device-token"
)

func (s *Store) CreateAuthRequest(ctx context.Context, a storage.AuthRequest) error {
	return authRequests.create(ctx, s, a, a.ID)
}

func (s *Store) GetAuthRequest(ctx context.Context, id string) (storage.AuthRequest, error) {
	return authRequests.get(ctx, s, id)
}

func (s *Store) UpdateAuthRequest(ctx context.Context, id string, change func(storage.AuthRequest) (storage.AuthRequest, error)) error {
	return authRequests.update(ctx, s, change, id)
}

func (s *Store) DeleteAuthRequest(ctx context.Context, id string) error {
	return authRequests.delete(ctx, s, id)
}

func (s *Store) CreateAuthCode(ctx context.Context, c storage.AuthCode) error {
	return authCodes.create(ctx, s, c, c.ID)
}

func (s *Store) GetAuthCode(ctx context.Context, id string) (storage.AuthCode, error) {
	return authCodes.get(ctx, s, id)
}

func (s *Store) DeleteAuthCode(ctx context.Context, id string) error {
	return authCodes.delete(ctx, s, id)
}

func (s *Store) CreateRefresh(ctx context.Context, r storage.RefreshToken) error {
	return refreshTokens.create(ctx, s, r, r.ID)
}

func (s *Store) GetRefresh(ctx context.Context, id string) (storage.RefreshToken, error) {
	return refreshTokens.get(ctx, s, id)
}

func (s *Store) ListRefreshTokens(ctx context.Context) ([]storage.RefreshToken, error) {
	return refreshTokens.list(ctx, s)
}

func (s *Store) UpdateRefreshToken(ctx context.Context, id string, change func(storage.RefreshToken) (storage.RefreshToken, error)) error {
	return refreshTokens.update(ctx, s, change, id)
}

func (s *Store) DeleteRefresh(ctx context.Context, id string) error {
	return refreshTokens.delete(ctx, s, id)
}

func (s *Store) CreateOfflineSessions(ctx context.Context, o storage.OfflineSessions) error {
	return sessions.create(ctx, s, o, o.UserID, o.ConnID)
}

func (s *Store) GetOfflineSessions(ctx context.Context, userID, connID string) (storage.OfflineSessions, error) {
	return sessions.get(ctx, s, userID, connID)
}

func (s *Store) UpdateOfflineSessions(ctx context.Context, userID, connID string, change func(storage.OfflineSessions) (storage.OfflineSessions, error)) error {
	return sessions.update(ctx, s, change, userID, connID)
}

func (s *Store) DeleteOfflineSessions(ctx context.Context, userID, connID string) error {
	return sessions.delete(ctx, s, userID, connID)
}

func (s *Store) CreateClient(ctx context.Context, c storage.Client) error {
	return clients.create(ctx, s, c, c.ID)
}

func (s *Store) GetClient(ctx context.Context, id string) (storage.Client, error) {
	return clients.get(ctx, s, id)
}

func (s *Store) ListClients(ctx context.Context) ([]storage.Client, error) {
	return clients.list(ctx, s)
}

func (s *Store) UpdateClient(ctx context.Context, id string, change func(storage.Client) (storage.Client, error)) error {
	return clients.update(ctx, s, change, id)
}

func (s *Store) DeleteClient(ctx context.Context, id string) error {
	return clients.delete(ctx, s, id)
}

// The id of a password is its email in lower case.

func (s *Store) CreatePassword(ctx context.Context, p storage.Password) error {
	p.Email = strings.ToLower(p.Email)
	return passwords.create(ctx, s, p, p.Email)
}

func (s *Store) GetPassword(ctx context.Context, email string) (storage.Password, error) {
	return passwords.get(ctx, s, strings.ToLower(email))
}

func (s *Store) ListPasswords(ctx context.Context) ([]storage.Password, error) {
	return passwords.list(ctx, s)
}

func (s *Store) UpdatePassword(ctx context.Context, email string, change func(storage.Password) (storage.Password, error)) error {
	return passwords.update(ctx, s, change, strings.ToLower(email))
}

func (s *Store) DeletePassword(ctx context.Context, email string) error {
	return passwords.delete(ctx, s, strings.ToLower(email))
}

func (s *Store) CreateConnector(ctx context.Context, c storage.Connector) error {
	return connectors.create(ctx, s, c, c.ID)
}

func (s *Store) GetConnector(ctx context.Context, id string) (storage.Connector, error) {
	return connectors.get(ctx, s, id)
}

func (s *Store) ListConnectors(ctx context.Context) ([]storage.Connector, error) {
	return connectors.list(ctx, s)
}

func (s *Store) UpdateConnector(ctx context.Context, id string, change func(storage.Connector) (storage.Connector, error)) error {
	return connectors.update(ctx, s, change, id)
}

func (s *Store) DeleteConnector(ctx context.Context, id string) error {
	return connectors.delete(ctx, s, id)
}

func (s *Store) CreateDeviceRequest(ctx context.Context, d storage.DeviceRequest) error {
	return deviceRequests.create(ctx, s, d, d.UserCode)
}

func (s *Store) GetDeviceRequest(ctx context.Context, userCode string) (storage.DeviceRequest, error) {
	return deviceRequests.get(ctx, s, userCode)
}

func (s *Store) CreateDeviceToken(ctx context.Context, d storage.DeviceToken) error {
	return deviceTokens.create(ctx, s, d, d.DeviceCode)
}

func (s *Store) GetDeviceToken(ctx context.Context, deviceCode string) (storage.DeviceToken, error) {
	return deviceTokens.get(ctx, s, deviceCode)
}

func (s *Store) UpdateDeviceToken(ctx context.Context, deviceCode string, change func(storage.DeviceToken) (storage.DeviceToken, error)) error {
	return deviceTokens.update(ctx, s, change, deviceCode)
}
