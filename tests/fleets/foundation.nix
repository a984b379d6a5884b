# 21 machines of a foundation that makes software: rented servers in two data centres, builders in a
# rack at a university and on desks, and laptops.
{ named }:
let
  rented = n: { address = "198.51.100.${toString n}"; };
  desk = {
    group = "desks";
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
    site = {
      host = "site";
      port = 8080;
      visibility = "public";
      tlsName = "foundation.example";
      tlsAliases = [ "www.foundation.example" ];
    };
    forum = {
      host = "forum";
      port = 8080;
      visibility = "public";
      tlsName = "forum.foundation.example";
    };
    forge = {
      host = "forge";
      port = 3000;
      visibility = "public";
      tlsName = "code.foundation.example";
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
    graphs = {
      host = "watch";
      port = 3000;
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
    builders.services = [ "builder" ];
    objects.services = [ "store" ];
    watchers.services = [ "graphs" ];
    lists.services = [ "archive" ];
    ingress.services = [
      "binaries"
      "forge"
      "forum"
      "site"
    ];
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
}
