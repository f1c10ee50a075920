// The encoding of values between Go and the engine; codec.go has the other half.
// A value is a tag byte and its data. Integers are little endian; a length or a
// number of elements has 4 bytes.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/types/types.h"
#include "common/types/value/nested.h"
#include "common/types/value/node.h"
#include "common/types/value/rel.h"
#include "common/types/value/value.h"

namespace tea {

using kuzu::common::LogicalType;
using kuzu::common::LogicalTypeID;
using kuzu::common::StructField;
using kuzu::common::StructType;
using kuzu::common::Value;

enum Tag : char { Null = 0, False, True, Integer, Float, String, List, Map, Node, Relation, Path, Number, Bytes, Floats };

// ParameterException says why a parameter cannot be bound.
class ParameterException : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Writer encodes.
class Writer {
public:
    size_t size() const { return data.size(); }
    void truncate(size_t size) { data.resize(size); }
    std::string take() { return std::move(data); }
    void append(const Writer& other) { data += other.data; }
    void byte(char b) { data.push_back(b); }
    void number(uint32_t n) { data.append(reinterpret_cast<const char*>(&n), sizeof n); }
    void bytes(const std::string& s) {
        number(s.size());
        data += s;
    }
    void string(const std::string& s) {
        byte(String);
        bytes(s);
    }
    void list(uint32_t n) {
        byte(List);
        number(n);
    }
    void integer(int64_t n) {
        byte(Integer);
        data.append(reinterpret_cast<const char*>(&n), sizeof n);
    }
    void floating(double f) {
        byte(Float);
        data.append(reinterpret_cast<const char*>(&f), sizeof f);
    }

    void value(const Value& v) {
        if (v.isNull()) {
            byte(Null);
            return;
        }
        switch (v.getDataType().getLogicalTypeID()) {
        case LogicalTypeID::BOOL:
            return byte(v.getValue<bool>() ? True : False);
        case LogicalTypeID::SERIAL:
        case LogicalTypeID::INT64:
            return integer(v.val.int64Val);
        case LogicalTypeID::INT32:
            return integer(v.val.int32Val);
        case LogicalTypeID::INT16:
            return integer(v.val.int16Val);
        case LogicalTypeID::INT8:
            return integer(v.val.int8Val);
        case LogicalTypeID::UINT32:
            return integer(v.val.uint32Val);
        case LogicalTypeID::UINT16:
            return integer(v.val.uint16Val);
        case LogicalTypeID::UINT8:
            return integer(v.val.uint8Val);
        case LogicalTypeID::UINT64:
        case LogicalTypeID::INT128:
        case LogicalTypeID::DECIMAL:
            byte(Number);
            return bytes(v.toString());
        case LogicalTypeID::DOUBLE:
            return floating(v.val.doubleVal);
        case LogicalTypeID::FLOAT:
            return floating(v.val.floatVal);
        case LogicalTypeID::STRING:
            return string(v.strVal);
        case LogicalTypeID::BLOB:
            byte(Bytes);
            return bytes(v.strVal);
        case LogicalTypeID::LIST:
        case LogicalTypeID::ARRAY:
            return elements(v);
        case LogicalTypeID::STRUCT:
            return fields(v);
        case LogicalTypeID::MAP:
            return entries(v);
        case LogicalTypeID::UNION:
            return value(*kuzu::common::NestedVal::getChildVal(&v, 0));
        case LogicalTypeID::NODE:
            return node(v);
        case LogicalTypeID::REL:
            return relation(v);
        case LogicalTypeID::RECURSIVE_REL:
            byte(Path);
            value(*kuzu::common::NestedVal::getChildVal(&v, 0)); // nodes
            return value(*kuzu::common::NestedVal::getChildVal(&v, 1));
        default: // dates, times, intervals, UUIDs, internal ids
            return string(v.toString());
        }
    }

private:
    void elements(const Value& v) {
        auto n = kuzu::common::NestedVal::getChildrenSize(&v);
        list(n);
        for (auto i = 0u; i < n; i++) {
            value(*kuzu::common::NestedVal::getChildVal(&v, i));
        }
    }

    void fields(const Value& v) {
        auto names = StructType::getFieldNames(v.getDataType());
        byte(Map);
        number(names.size());
        for (auto i = 0u; i < names.size(); i++) {
            bytes(names[i]);
            value(*kuzu::common::NestedVal::getChildVal(&v, i));
        }
    }

    // entries writes a MAP, a list of structs of a key and a value.
    void entries(const Value& v) {
        auto n = kuzu::common::NestedVal::getChildrenSize(&v);
        byte(Map);
        number(n);
        for (auto i = 0u; i < n; i++) {
            auto entry = kuzu::common::NestedVal::getChildVal(&v, i);
            bytes(kuzu::common::NestedVal::getChildVal(entry, 0)->toString());
            value(*kuzu::common::NestedVal::getChildVal(entry, 1));
        }
    }

    void node(const Value& v) {
        using kuzu::common::NodeVal;
        byte(Node);
        value(*NodeVal::getNodeIDVal(&v));
        value(*NodeVal::getLabelVal(&v));
        auto n = NodeVal::getNumProperties(&v);
        number(n);
        for (auto i = 0u; i < n; i++) {
            bytes(NodeVal::getPropertyName(&v, i));
            value(*NodeVal::getPropertyVal(&v, i));
        }
    }

    void relation(const Value& v) {
        using kuzu::common::RelVal;
        byte(Relation);
        value(*RelVal::getIDVal(&v));
        value(*RelVal::getSrcNodeIDVal(&v));
        value(*RelVal::getDstNodeIDVal(&v));
        value(*RelVal::getLabelVal(&v));
        auto n = RelVal::getNumProperties(&v);
        number(n);
        for (auto i = 0u; i < n; i++) {
            bytes(RelVal::getPropertyName(&v, i));
            value(*RelVal::getPropertyVal(&v, i));
        }
    }

    std::string data;
};

// table returns a result: a byte of flags, the names of the columns as a list,
// the number of rows, the rows.
inline Writer table(const std::vector<std::string>& columns, uint32_t count, const Writer& rows, char flags = 0) {
    Writer all;
    all.byte(flags);
    all.list(columns.size());
    for (auto& column : columns) {
        all.string(column);
    }
    all.number(count);
    all.append(rows);
    return all;
}

// Reader decodes parameters.
class Reader {
public:
    Reader(const char* data, int64_t size) : at{data}, end{data + size} {}

    // parameters reads a map of names to values.
    std::unordered_map<std::string, std::unique_ptr<Value>> parameters() {
        std::unordered_map<std::string, std::unique_ptr<Value>> all;
        if (at == end) {
            return all;
        }
        for (auto n = number(); n > 0; n--) {
            auto name = bytes();
            try {
                auto tree = read();
                all.emplace(name, tree.value(tree.type));
            } catch (const ParameterException& e) {
                throw ParameterException("parameter " + name + ": " + e.what());
            }
        }
        return all;
    }

    // texts reads a list of strings.
    std::vector<std::string> texts() {
        std::vector<std::string> all;
        for (auto n = number(); n > 0; n--) {
            all.push_back(bytes());
        }
        return all;
    }

private:
    // Tree is a decoded value with the type that all of it has.
    struct Tree {
        Tag tag;
        LogicalType type;
        int64_t integer = 0;
        double floating = 0;
        std::string text{};
        std::vector<std::string> names{};
        std::vector<Tree> children{};

        // value makes the engine's value of a type that merge returned.
        std::unique_ptr<Value> value(const LogicalType& as) const {
            if (tag == Null) {
                return std::make_unique<Value>(Value::createNullValue(as));
            }
            std::vector<std::unique_ptr<Value>> made;
            switch (as.getLogicalTypeID()) {
            case LogicalTypeID::BOOL:
                return std::make_unique<Value>(tag == True);
            case LogicalTypeID::INT64:
                return std::make_unique<Value>(integer);
            case LogicalTypeID::DOUBLE:
                return std::make_unique<Value>(tag == Integer ? static_cast<double>(integer) : floating);
            case LogicalTypeID::FLOAT:
                return std::make_unique<Value>(static_cast<float>(floating));
            case LogicalTypeID::STRUCT: {
                for (auto& field : StructType::getFields(as)) {
                    made.push_back(child(field.getName()).value(field.getType()));
                }
                return std::make_unique<Value>(as.copy(), std::move(made));
            }
            case LogicalTypeID::LIST: {
                auto& type = kuzu::common::ListType::getChildType(as);
                for (auto& c : children) {
                    made.push_back(c.value(type));
                }
                return std::make_unique<Value>(as.copy(), std::move(made));
            }
            default: // STRING and BLOB
                return std::make_unique<Value>(as.copy(), text);
            }
        }

        const Tree& child(const std::string& name) const {
            static const Tree null{Null, LogicalType::ANY()};
            for (auto i = 0u; i < names.size(); i++) {
                if (names[i] == name) {
                    return children[i];
                }
            }
            return null;
        }
    };

    // merge returns the type that values of both types can have.
    static LogicalType merge(const LogicalType& a, const LogicalType& b) {
        auto x = a.getLogicalTypeID(), y = b.getLogicalTypeID();
        if (x == LogicalTypeID::ANY) {
            return b.copy();
        }
        if (y == LogicalTypeID::ANY) {
            return a.copy();
        }
        if (x == LogicalTypeID::LIST && y == LogicalTypeID::LIST) {
            return LogicalType::LIST(merge(kuzu::common::ListType::getChildType(a), kuzu::common::ListType::getChildType(b)));
        }
        if (x == LogicalTypeID::STRUCT && y == LogicalTypeID::STRUCT) {
            return mergeFields(a, b);
        }
        if (x == y) {
            return a.copy();
        }
        if ((x == LogicalTypeID::INT64 || x == LogicalTypeID::DOUBLE) && (y == LogicalTypeID::INT64 || y == LogicalTypeID::DOUBLE)) {
            return LogicalType::DOUBLE();
        }
        throw ParameterException("a list has values of the types " + a.toString() + " and " + b.toString());
    }

    // mergeFields returns a struct with the fields of both; a value without one
    // of them has null there.
    static LogicalType mergeFields(const LogicalType& a, const LogicalType& b) {
        std::vector<StructField> fields;
        for (auto& field : StructType::getFields(a)) {
            auto name = field.getName();
            auto other = StructType::hasField(b, name);
            fields.emplace_back(name, other ? merge(field.getType(), StructType::getField(b, name).getType()) : field.getType().copy());
        }
        for (auto& field : StructType::getFields(b)) {
            if (!StructType::hasField(a, field.getName())) {
                fields.emplace_back(field.getName(), field.getType().copy());
            }
        }
        return LogicalType::STRUCT(std::move(fields));
    }

    Tree read() {
        Tree tree{static_cast<Tag>(*take(1)), LogicalType::ANY()};
        switch (tree.tag) {
        case Null:
            break;
        case False:
        case True:
            tree.type = LogicalType::BOOL();
            break;
        case Integer:
            tree.type = LogicalType::INT64();
            memcpy(&tree.integer, take(8), 8);
            break;
        case Float:
            tree.type = LogicalType::DOUBLE();
            memcpy(&tree.floating, take(8), 8);
            break;
        case String:
            tree.type = LogicalType::STRING();
            tree.text = bytes();
            break;
        case Bytes:
            tree.type = LogicalType::BLOB();
            tree.text = bytes();
            break;
        case Floats:
            readFloats(tree);
            break;
        case List:
            readList(tree);
            break;
        case Map:
            readMap(tree);
            break;
        default:
            throw ParameterException("unknown tag " + std::to_string(tree.tag));
        }
        return tree;
    }

    void readFloats(Tree& tree) {
        tree.type = LogicalType::LIST(LogicalType::FLOAT());
        for (auto n = number(); n > 0; n--) {
            float f;
            memcpy(&f, take(sizeof f), sizeof f);
            tree.children.push_back(Tree{Float, LogicalType::FLOAT(), 0, f});
        }
    }

    void readList(Tree& tree) {
        auto element = LogicalType::ANY();
        for (auto n = number(); n > 0; n--) {
            tree.children.push_back(read());
            element = merge(element, tree.children.back().type);
        }
        tree.type = LogicalType::LIST(std::move(element));
    }

    void readMap(Tree& tree) {
        std::vector<StructField> fields;
        for (auto n = number(); n > 0; n--) {
            tree.names.push_back(bytes());
            tree.children.push_back(read());
            fields.emplace_back(tree.names.back(), tree.children.back().type.copy());
        }
        if (fields.empty()) {
            throw ParameterException("an object without fields cannot be passed");
        }
        tree.type = LogicalType::STRUCT(std::move(fields));
    }

    const char* take(size_t n) {
        if (static_cast<size_t>(end - at) < n) {
            throw ParameterException("the encoding ends early");
        }
        auto from = at;
        at += n;
        return from;
    }

    uint32_t number() {
        uint32_t n;
        memcpy(&n, take(sizeof n), sizeof n);
        return n;
    }

    std::string bytes() {
        auto n = number();
        return std::string(take(n), n);
    }

    const char* at;
    const char* end;
};

} // namespace tea
