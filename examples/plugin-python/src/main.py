from actions import bundle
from tea_plugin import serve


def main():
    serve(bundle)


if __name__ == "__main__":
    main()
