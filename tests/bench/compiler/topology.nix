# This topology is a cluster of any size, for the benchmark of the compiler. It has 100 users, 20
# roles, and the number of hosts in `hosts`. Each host has the number of services in `services`. If
# `elsewhere` is given, it is the number of services of every host except the one in the middle.
# Each service is reached through a role, so that access grows with the cluster: each user may reach
# a sixteenth of all services, and each node may reach one service.
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
  # Applies f to each service of host i.
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
