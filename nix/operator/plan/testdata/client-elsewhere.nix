# A service of another cluster becomes a client of the issuer here, and a service here a client of
# the issuer there.
{ base, key, merge, ... }:
{
  before = base;
  after = merge base {
    clusters.blue = {
      clients.tickets = {
        nodes = {
        gate = key "gate";
      };
        redirectURIs = [ "https://tickets.example.org/callback" ];
        allowedGroups = [ "support" ];
      };
      oidc = {
        issuer = "https://auth.blue.example";
        hosts.gate = "gate.blue.example:4603";
      };
    };
    services.wiki.sso.cluster = "blue";
  };
}
