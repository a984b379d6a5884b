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
  on = host: port: { inherit host port; };
  web = host: port: tlsName: {
    inherit host port tlsName;
    visibility = "public";
    ingress.hsts = 31536000;
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

  services = {
    photos = web "nas" 2283 "photos.home.example" // {
      ingress = {
        hsts = 31536000;
        maxBody = 51200;
        timeout = 600;
      };
    };
    cloud = web "nas" 8080 "cloud.home.example" // {
      tlsAliases = [ "files.home.example" ];
      ingress = {
        hsts = 31536000;
        paths = {
          "/metrics".deny = true;
          "/settings/admin".from = [ "10.0.0.0/24" ];
        };
      };
    };
    login = web "gate" 5556 "login.home.example";
    shares = on "nas" 445;
    films = on "media" 8096;
    # People sign in before they reach what has no sign-in of its own.
    music = web "media" 4533 "music.home.example" // {
      sso.mode = "gate";
    };
    books = web "media" 8083 "books.home.example" // {
      sso = {
        mode = "gate";
        allowedGroups = [ "grown-ups" ];
        session = 168;
      };
    };
    lights = on "assistant" 8123;
    mqtt = on "assistant" 1883;
    paper = on "printer" 631;
    forge = on "git" 3000;
    # A game, at its ports over TCP and UDP.
    craft = {
      host = "games";
      visibility = "public";
      ports = {
        java = 25565;
        bedrock = {
          port = 19132;
          protocol = "udp";
        };
      };
      publicPorts = {
        java = 25565;
        bedrock = {
          port = 19132;
          limits.connections = 4;
        };
      };
    };
    passwords = on "vault" 8222;
    frames = on "cameras" 5000;
    copies = on "backup" 8000;
    remote-copies = on "cottage" 8000;
    names = {
      hosts = [
        "dns1"
        "dns2"
      ];
      port = 53;
      protocol = "udp";
    };
    shell = {
      hosts = [
        "assistant"
        "backup"
        "cameras"
        "cottage"
        "games"
        "git"
        "media"
        "nas"
        "pve1"
        "pve2"
        "vault"
      ];
      port = 22;
      scope = "node";
      protocol = "ssh";
    };
    # The identity of Caddy.
    proxy = {
      host = "gate";
      port = 443;
      visibility = "host";
      user = "caddy";
      roles = [ "ingress" ];
    };
  };
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
