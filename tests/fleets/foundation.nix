# 21 machines of a foundation that makes software: rented servers in two data centres, builders in a
# rack at a university and on desks, and laptops.
{ named }:
let
  rented = n: { address = "198.51.100.${toString n}"; };
  desk = {
    group = "desks";
  };
  web = host: port: tlsName: {
    inherit host port tlsName;
    visibility = "public";
    ingress = {
      hsts = 31536000;
      paths."/metrics".deny = true;
    };
  };
  rack = n: {
    group = "rack";
    networks.rack = "10.20.0.${toString n}";
  };
in
{
  pathSalt = "5c1d2e3f40516273849506a7b8c9d0e1";
  hosts = {
    front1 = rented 1 // {
      capabilities = [ "ingress" ];
      relay = true;
      roles = [ "ingress" ];
    };
    front2 = rented 2 // {
      capabilities = [ "ingress" ];
      relay = true;
      roles = [ "ingress" ];
    };
    site = rented 3;
    forum = rented 4;
    forge = rented 5;
    cache = rented 6;
    mail = rented 7;
    watch = rented 8;
    data1 = rented 9;
    data2 = rented 10;
    # In the rack of the university, one machine is called from outside.
    rack1 = rack 1 // {
      address = "rack.university.example";
      relay = true;
    };
    rack2 = rack 2;
    rack3 = rack 3;
    rack4 = rack 4;
    arm1 = desk;
    arm2 = desk;
    mac1 = desk;
    keys = {
      group = "desks";
      hidden = true;
    };
  }
  // named [ "laptop-amal" "laptop-bo" "laptop-cleo" ] (name: {
    kind = "device";
    users = [ (builtins.substring 7 99 name) ];
  });
  hostGroups = {
    rack.relays = [
      "front1"
      "rack1"
    ];
    desks.relays = [
      "front1"
      "front2"
    ];
  };
  services = {
    site = web "site" 8080 "foundation.example";
    forum = web "forum" 8080 "forum.foundation.example" // {
      ingress = {
        hsts = 31536000;
        maxBody = 100;
        paths = {
          "/admin".from = [ "198.51.100.0/24" ];
          "/metrics".deny = true;
        };
      };
    };
    # Git over HTTPS and over SSH, whose sshd is that of the forge.
    forge = removeAttrs (web "forge" 3000 "code.foundation.example") [ "port" ] // {
      ports = {
        http = 3000;
        ssh = 2222;
      };
      publicPorts.ssh = 22;
    };
    # Message queues of builders elsewhere; TLS ends at the broker, which verifies their certificates.
    queue = {
      host = "forge";
      port = 5671;
      visibility = "public";
      publicPorts.amqps = {
        port = 5671;
        serverNames = [ "queue.foundation.example" ];
        limits.connections = 50;
      };
    };
    login = web "front1" 5556 "login.foundation.example";
    # The identity of nginx's workers on both ingresses.
    proxy = {
      hosts = [
        "front1"
        "front2"
      ];
      port = 443;
      visibility = "host";
      user = "www-data";
      roles = [ "ingress" ];
    };
    coordinator = {
      host = "forge";
      port = 8100;
      user = "coordinator";
      roles = [ "builds" ];
      visibility = "host";
    };
    builder = {
      hosts = [
        "arm1"
        "arm2"
        "mac1"
        "rack2"
        "rack3"
        "rack4"
      ];
      port = 22;
      scope = "node";
      protocol = "ssh";
    };
    store = {
      hosts = [
        "data1"
        "data2"
      ];
      port = 9000;
    };
    binaries = {
      host = "cache";
      port = 8080;
      user = "cache";
      visibility = "public";
      tlsName = "cache.foundation.example";
      roles = [ "objects" ];
    };
    signer = {
      host = "keys";
      port = 7000;
    };
    graphs = web "watch" 3000 "graphs.foundation.example" // {
      sso = {
        mode = "gate";
        allowedGroups = [ "infra" ];
      };
    };
    archive = {
      host = "mail";
      port = 8025;
    };
  };
  users = {
    amal.roles = [
      "builders"
      "operator"
      "watchers"
    ];
    bo.roles = [ "watchers" ];
    cleo.roles = [ "lists" ];
  };
  roles = {
    builds.services = [
      "builder"
      "signer"
    ];
    builders = {
      services = [ "builder" ];
      logins = {
        builder = [ "build" ];
        "builder@rack2" = [ "root" ];
      };
      privileged = true;
    };
    objects.services = [ "store" ];
    watchers.services = [ "graphs" ];
    lists.services = [ "archive" ];
    ingress.services = [
      "binaries"
      "forge"
      "forum"
      "graphs"
      "login"
      "queue"
      "site"
    ];
  };
  redirects = {
    "www.foundation.example" = "foundation.example";
    "lists.foundation.example" = "forum.foundation.example";
  };
  expect = [
    {
      who = "bo";
      reaches = [ "graphs" ];
      not = [ "signer" ];
    }
  ];
  providers.cert.hosts = [ "front1" ];
  providers.config.hosts = [ "front1" ];
  providers.oidc = {
    hosts = [ "front1" ];
    issuer = "https://login.foundation.example";
  };
  providers.ssh.hosts = [ "front1" ];
  providers.tls = {
    hosts = [ "front1" ];
    contact = "infra@foundation.example";
  };
}
