# The same access, as it is expected.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [ "ingress" ];
  };
  services.board = {
    host = "beta";
    ports = {
      http = 8090;
      metrics = 9100;
    };
    visibility = "public";
    tlsName = "board.example.org";
    sso.mode = "gate";
    sso.allowedGroups = [ "writers" ];
  };
  services.auth = {
    host = "alpha";
    port = 5556;
    listenPort = 80;
  };
  services.chat = {
    host = "beta";
    port = 8100;
    sso.mode = "oidc";
    sso.redirectURIs = [ "https://chat.example.org/callback" ];
  };
  roles.ingress.services = [
    "auth"
    "board"
  ];
  roles.reader.services = [
    "auth"
    "board"
    "chat"
    "wiki"
  ];
  services.wiki.roles = [ "reader" ];
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "http://auth.golden.flor.rete";
  };
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "admin@example.org";
  };
  expect = [
    {
      who = "service/wiki";
      reaches = [ "board:metrics" ];
      not = [ "board:http" ];
    }
    {
      who = "alpha";
      reaches = [ "board" ];
    }
    {
      who = "ann";
      reaches = [ "board" ];
    }
    {
      who = "group/staff";
      reaches = [ "chat" ];
      not = [
        "board"
        "wiki"
      ];
    }
    {
      who = "group/writers";
      reaches = [
        "board"
        "chat"
      ];
      not = [ "wiki" ];
    }
  ];
}
