# The services of the family.
let
  on = host: port: { inherit host port; };
  web = host: port: tlsName: {
    inherit host port tlsName;
    visibility = "public";
    ingress.hsts = 31536000;
  };
in
{
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
}
