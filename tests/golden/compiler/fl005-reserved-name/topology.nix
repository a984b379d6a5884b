{ base, merge, ... }: merge base { services.florete-provider = { host = "beta"; port = 1; }; }
