# X.509-SVIDs of the node, of the services and users on it, and of its vertex if it is a relay.
let
  inherit (builtins) attrValues filter;
  names = import ../lib/names.nix;
  inherit (import ../language/types) between default;
in
{
  doc = "Issues certificates. Every cluster needs it.";
  port = 0;
  apart = "each has an issuing key and certificate, enrolments, an audit log and a backup of its own, and does not notice that a copy of a machine enrolled at another";
  settings.lifetime =
    default "Lifetime of certificates, in seconds. A host renews when a third of it is left." 86400
      (between 10 7776000 "seconds");
  policy = t: { inherit (t.providers.cert) lifetime; };

  reasons = clean: map (_: "every host needs a certificate") (attrValues clean.hosts);

  needs =
    t:
    let
      # The forwarder reads them; activation knows its account.
      certificate = name: id: {
        id = "cert-${name}";
        for = id;
        request = { inherit id; };
        inherit deliver renew;
      };
      # Shared by all certificates.
      deliver = {
        inherit files;
        owner = "";
      };
      files = {
        "svid.pem" = {
          value = "svid";
          mode = "0444";
        };
        "key.pem" = {
          value = "key";
          mode = "0400";
        };
        "bundle.pem" = {
          value = "bundle";
          mode = "0444";
        };
      };
      renew.atPercent = 66;
    in
    host:
    let
      acting = filter (s: s.acts) host.running;
    in
    [ (certificate "node" host.id // { after = [ ]; }) ]
    ++ map (s: certificate "service-${s.name}" (s.idOn host.name)) acting
    ++ map (s: certificate "shared-${s.name}" s.shared) (filter (s: s.scope == "both") acting)
    ++ map (name: certificate "user-${name}" t.users.${name}.id) host.users
    ++ (
      if host.relay then
        [ (certificate "vertex" (names.id t.trustDomain "vertex/${host.name}")) ]
      else
        [ ]
    )
    # The process of kind cert issues its own certificate; the other kinds fetch theirs.
    ++ map (
      kind:
      certificate "service-${names.provider kind}" host.provider.${kind}.id
      // {
        deliver = {
          inherit files;
          owner = (import ../units/common.nix host.instance).unit "provider-${kind}";
        };
      }
    ) (filter (kind: kind != "cert") host.kinds);
}
