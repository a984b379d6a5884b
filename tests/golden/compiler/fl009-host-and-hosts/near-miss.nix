{ base, ... }: base // { services.wiki = { hosts = [ "alpha" "beta" ]; port = 8080; }; }
