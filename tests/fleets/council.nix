# 13 servers of a students' council: in the network of a university, which lets in nothing from
# outside but one machine, and one server elsewhere. Its proxies, sign-ins and mail ports are the
# topology's; nothing of nginx is written by hand.
{ named }:
let
  campus = n: {
    group = "campus";
    networks.campus = "141.24.0.${toString n}";
  };
  university = [ "141.24.0.0/16" ];
  web = host: tlsName: {
    inherit host tlsName;
    port = 8080;
    visibility = "public";
    ingress = {
      hsts = 31536000;
      paths."/metrics".deny = true;
    };
  };
  with-rules =
    service: rules:
    service
    // {
      ingress = service.ingress // rules // { paths = service.ingress.paths // rules.paths or { }; };
    };
in
{
  pathSalt = "0f9e8d7c6b5a49382716051423324150";
  hosts = {
    door = campus 2 // {
      address = "door.council.example";
      capabilities = [ "ingress" ];
      relay = true;
      roles = [ "ingress" ];
      users = [
        "jonas"
        "mira"
        "noor"
      ];
    };
    away = {
      address = "192.0.2.80";
      capabilities = [ "ingress" ];
      relay = true;
      roles = [ "ingress" ];
    };
    auth = campus 10;
    wiki = campus 11;
    cloud = campus 12;
    mail = campus 13;
    chat = campus 14;
    tickets = campus 15;
    git = campus 16;
    builds = campus 17;
    databases = campus 18;
    metrics = campus 19;
    copies = campus 20 // {
      hidden = true;
    };
  };
  hostGroups.campus.relays = [
    "away"
    "door"
  ];
  services = {
    wiki = with-rules (web "wiki" "wiki.council.example") { paths."/admin".from = university; };
    cloud = with-rules (web "cloud" "cloud.council.example") {
      maxBody = 16384;
      timeout = 3600;
    };
    # Its page and its WebSocket are two programs.
    chat =
      removeAttrs (with-rules (web "chat" "chat.council.example") { paths."/ws".port = "ws"; }) [ "port" ]
      // {
        ports = {
          http = 8080;
          ws = 8081;
        };
      };
    tickets = with-rules (web "tickets" "tickets.council.example") {
      paths."/scp".from = university;
    } // {
      roles = [ "sql" ];
      user = "tickets";
    };
    git = web "git" "git.council.example" // {
      roles = [ "sql" ];
      user = "git";
    };
    # Webmail, and the ports of mail servers and programs.
    mail = removeAttrs (web "mail" "mail.council.example") [ "port" ] // {
      ports = {
        http = 8080;
        smtp = {
          port = 2525;
          identity = "proxy-v2";
        };
        submission = 10465;
        imap = 10993;
      };
      publicPorts = {
        smtp = {
          port = 25;
          limits.opensPerSecond = 5;
        };
        submission = 465;
        imap = 993;
      };
    };
    login = web "door" "login.council.example" // {
      port = 5556;
    };
    # The identity of nginx's workers on the two ingresses.
    proxy = {
      hosts = [
        "away"
        "door"
      ];
      port = 443;
      visibility = "host";
      user = "www-data";
      roles = [ "ingress" ];
    };
    postgres = {
      host = "databases";
      port = 5432;
    };
    # It has no sign-in of its own.
    graphs = web "metrics" "graphs.council.example" // {
      port = 3000;
      sso = {
        mode = "gate";
        allowedGroups = [ "board" ];
        session = 24;
      };
    };
    runner = {
      host = "builds";
      port = 8093;
      user = "runner";
      roles = [ "sources" ];
      visibility = "host";
    };
    archive = {
      host = "copies";
      port = 8000;
    };
    exporter = {
      hosts = [
        "auth"
        "builds"
        "chat"
        "cloud"
        "copies"
        "databases"
        "git"
        "mail"
        "tickets"
        "wiki"
      ];
      port = 9100;
      scope = "node";
    };
    shell = {
      hosts = [
        "auth"
        "builds"
        "chat"
        "cloud"
        "copies"
        "databases"
        "git"
        "mail"
        "metrics"
        "tickets"
        "wiki"
      ];
      port = 22;
      scope = "node";
      protocol = "ssh";
    };
    scraper = {
      host = "metrics";
      port = 9090;
      user = "prometheus";
      roles = [ "watching" ];
      visibility = "host";
    };
  };
  users = named [ "mira" "noor" ] (_: { roles = [ "admins" ]; }) // {
    jonas.roles = [
      "admins"
      "operator"
    ];
  };
  roles = {
    admins = {
      services = [
        "archive"
        "shell"
      ];
      logins.shell = [ "root" ];
      privileged = true;
    };
    sql.services = [ "postgres" ];
    sources.services = [ "git" ];
    watching.services = [ "exporter" ];
    ingress.services = [
      "chat"
      "cloud"
      "git"
      "graphs"
      "login"
      "mail"
      "tickets"
      "wiki"
    ];
  };
  redirects = {
    "council.example" = "wiki.council.example";
    "www.council.example" = "wiki.council.example";
  };
  # The scanner of the university's computing centre.
  outside.scanner = {
    addresses = [ "141.24.200.7" ];
    via = "door";
    reaches = [ "tickets" ];
  };
  providers.cert.hosts = [ "door" ];
  providers.config.hosts = [ "door" ];
  providers.oidc = {
    hosts = [ "door" ];
    issuer = "https://login.council.example";
  };
  providers.ssh.hosts = [ "door" ];
  providers.tls = {
    hosts = [ "door" ];
    contact = "admins@council.example";
  };
}
