# 25 machines of a family: at home behind the NAT of a provider, at the parents' behind another one,
# and two rented servers. What is used from outside had a forwarded port each before, and a page of
# configuration for a reverse proxy.
{ named }:
let
  server = n: {
    group = "home";
    networks.home = "10.0.0.${toString n}";
  };
  device = user: {
    kind = "device";
    networks.home = [ ];
    users = [ user ];
  };
in
{
  pathSalt = "b7c1e09d5f7a4b6c8d2e3f405162738a";
  hosts = {
    gate = {
      address = "203.0.113.7";
      capabilities = [ "ingress" ];
      relay = true;
      roles = [ "ingress" ];
    };
    gate2 = {
      address = "198.51.100.20";
      relay = true;
      relayLimits.bytesPerSecond = 12500000;
    };
    vault = server 9 // {
      hidden = true;
    };
    nas = server 10;
    pve1 = server 11;
    pve2 = server 12;
    media = server 13;
    assistant = server 14;
    printer = server 15;
    dns1 = server 16;
    dns2 = server 17;
    git = server 18;
    games = server 19;
    backup = server 20;
    cameras = server 21;
    cottage = {
      group = "parents";
      networks.parents = "192.168.7.2";
    };
    parents-pc = {
      kind = "device";
      networks.parents = [ ];
      users = [ "walter" ];
    };
    laptop-friend = {
      kind = "device";
      users = [ "friend" ];
    };
  }
  // named [ "desktop" "laptop-paula" "phone-paula" ] (_: device "paula")
  // named [ "laptop-otto" "tablet-otto" "kids-pc" "workstation" ] (_: device "otto");
  hostGroups = {
    home.relays = [
      "gate"
      "gate2"
    ];
    parents.relays = [ "gate" ];
  };

  services = import ./services.nix;
  redirects."www.home.example" = "photos.home.example";
  # Sensors that speak MQTT and cannot run the agent, on the network at home.
  outside.sensors = {
    addresses = [ "10.0.0.128/25" ];
    via = "nas";
    reaches = [ "mqtt" ];
  };
  users = {
    paula.roles = [
      "admin"
      "family"
      "operator"
    ];
    otto.roles = [ "family" ];
    walter.roles = [ "parents" ];
    friend.roles = [ "guest" ];
  };
  roles = {
    family.services = [
      "books"
      "cloud"
      "craft"
      "films"
      "lights"
      "music"
      "names"
      "paper"
      "passwords"
      "photos"
      "shares"
    ];
    admin = {
      services = [
        "copies"
        "forge"
        "frames"
        "mqtt"
        "remote-copies"
        "shell"
      ];
      logins = {
        shell = [ "paula" ];
        "shell@nas" = [ "root" ];
      };
      privileged = true;
    };
    parents.services = [
      "films"
      "photos"
    ];
    guest.services = [ "craft" ];
    ingress.services = [
      "books"
      "cloud"
      "craft"
      "login"
      "music"
      "photos"
    ];
  };
  expect = [
    {
      who = "walter";
      reaches = [ "photos" ];
      not = [ "passwords" ];
    }
    {
      who = "friend";
      reaches = [ "craft" ];
      not = [
        "films"
        "shell@games"
      ];
    }
  ];
  providers.cert.hosts = [ "gate" ];
  providers.config.hosts = [ "gate" ];
  providers.oidc = {
    hosts = [ "gate" ];
    issuer = "https://login.home.example";
  };
  providers.ssh.hosts = [ "gate" ];
  providers.tls = {
    hosts = [ "gate" ];
    contact = "paula@home.example";
  };
}
