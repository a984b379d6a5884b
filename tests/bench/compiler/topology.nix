# A cluster of `hosts` hosts with `services` services each, 100 users and 20 roles. Every service is
# reached through some role, so that access grows with the cluster: a sixteenth of all services for
# each user, one service for each node. Every host but the one in the middle has `elsewhere`
# services instead, if given.
{
  hosts,
  services ? 5,
  elsewhere ? services,
}:
let
  inherit (builtins)
    concatLists
    concatMap
    genList
    listToAttrs
    substring
    ;
  inherit (import ../../../nix/lib/names.nix) sri;

  mod = a: b: a - a / b * b;
  attrs = n: f: listToAttrs (genList f n);
  key = name: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA" + substring 8 42 (sri name);

  host = i: "host-${toString i}";
  team = i: "team-${toString (mod i 16)}";
  name = i: k: "service-${toString i}-${toString k}";
  # f for each service of host i.
  each = f: i: genList (f i) (if i == hosts / 2 then services else elsewhere);
in
{
  serial = 1;
  rev = "bench";
  name = "bench";
  trustDomain = "bench.flor";
  trust = {
    roots = [ "-----BEGIN CERTIFICATE-----\nYmVuY2g=\n-----END CERTIFICATE-----\n" ];
    signingKeys = [ "bench-1:/bdjUnTr/FQ/3D0oGdSIdQCyqOQoff/r9Etfx6OmYMo=" ];
  };

  hosts = attrs hosts (i: {
    name = host i;
    value = {
      address = "10.${toString (i / 62500)}.${toString (mod (i / 250) 250)}.${toString (mod i 250 + 1)}";
      sshHostKey = key (toString i);
      users = if i < 100 then [ "user-${toString i}" ] else [ ];
    };
  });

  services = listToAttrs (
    concatLists (
      genList (each (
        i: k: {
          name = name i k;
          value = {
            host = host i;
            port = 8000 + services * mod i 1000 + k;
            user = "service-${toString k}";
          }
          // (if k == 1 then { roles = [ "client" ]; } else { })
          // (
            if k == 2 then
              {
                sso = {
                  mode = "oidc";
                  redirectURIs = [ "https://${name i k}.example.org/callback" ];
                };
              }
            else
              { }
          );
        }
      )) hosts
    )
  );

  users = attrs 100 (i: {
    name = "user-${toString i}";
    value.roles = [ (team i) ];
  });

  roles =
    attrs 16 (t: {
      name = team t;
      value.services = concatMap (each name) (genList (j: t + 16 * j) ((hosts - t + 15) / 16));
    })
    // {
      node.services = [ (name 0 0) ];
      operator.serviceGroups = [
        "control-plane"
        "control-plane-write"
      ];
      client.services = [ (name 1 0) ];
      auditor.serviceGroups = [ "control-plane" ];
    };
  serviceGroups = {
    control-plane = [ (name 0 0) ];
    control-plane-write = [ ];
  };
  providers = {
    cert.hosts = [ (host 0) ];
    config.hosts = [ (host 0) ];
    oidc = {
      hosts = [ (host 0) ];
      issuer = "https://auth.example.org";
    };
  };
}
